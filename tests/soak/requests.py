"""What is asked: every kind of request with its weight, made at random from a seed.

Kinds that are refused ask for what cannot be had; all others are to be finished. Knows no network.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tests.soak.outcomes import End

Body = dict[str, Any]
WORDS = ["the", "cat", "sat", "on", "a", "mat", "while", "seven", "old", "ships", "sailed", "past", "under",
         "one", "quiet", "moon", "of", "silver", "and", "salt"]  # fmt: skip
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "maximum": 99}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
TOOL = {"name": "weather", "description": "the weather of a place",
        "parameters": {"type": "object",
                       "properties": {"place": {"type": "string", "maxLength": 12}}}}  # fmt: skip


class Models(NamedTuple):
    """Names. `main` talks and makes vectors, `other` is another one, `guest` is unloaded after each
    request."""

    main: str
    other: str
    guest: str


@dataclass(frozen=True)
class Ask:
    """One request. `raw` is its body; `wanted` is the end that is right for it, beside BUSY and HUNG_UP.
    `limited`: sent with the key that may not ask often."""

    path: str
    dialect: str
    raw: bytes
    wanted: End = End.FINISHED
    limited: bool = False

    @property
    def counts(self) -> int:
        """As how many requests the daemon counts it: one more where a reply repeats its prompt as text."""
        return 2 if self.path == "/completion" else 1


def text(rng: random.Random, most: int) -> str:
    """Words, mostly few; half of them begin as many others do, so that prefixes are shared."""
    count = min(most, int(rng.expovariate(1 / 40)) + 3)
    begin = WORDS[:count] if rng.random() < 0.5 else []
    return " ".join(begin + rng.choices(WORDS, k=count - len(begin)))


def _ask(path: str, dialect: str, body: Body) -> Ask:
    return Ask(path, dialect, json.dumps(body).encode())


def _talk(rng: random.Random, models: Models, most: int = 200) -> tuple[str, str]:
    """A model and a text for it: mostly the tiny one, of which more requests fit into a second."""
    if rng.random() < 0.3:
        return models.main, text(rng, most)
    return models.other, text(rng, min(most, 60))


def _turns(rng: random.Random, said: str) -> list[Body]:
    earlier = [("user", text(rng, 8)), ("assistant", text(rng, 8))] if rng.random() < 0.3 else []
    return [{"role": role, "content": content} for role, content in (*earlier, ("user", said))]


def _chat(rng: random.Random, models: Models) -> Body:
    model, said = _talk(rng, models)
    return {"model": model, "messages": _turns(rng, said), "stream": rng.random() < 0.6}


def _prompt(rng: random.Random, models: Models, most: int = 200) -> Body:
    model, said = _talk(rng, models, most)
    return {"model": model, "prompt": said, "stream": rng.random() < 0.6}


def _tokens(rng: random.Random) -> int:
    return rng.choice((1, 2, 8, 8, 16, 16, 32, 80))


def openai_chat(rng: random.Random, models: Models) -> Ask:
    body = {**_chat(rng, models), "max_tokens": _tokens(rng)}
    if rng.random() < 0.2:
        body |= {"logprobs": True, "top_logprobs": 3}
    if rng.random() < 0.1:
        body |= {"n": 2, "stream": False}  # streamed, each of the two would have an end of its own
    return _ask("/v1/chat/completions", "openai", body)


def openai_completion(rng: random.Random, models: Models) -> Ask:
    options = {"stop": ["moon"], "seed": rng.randrange(9), "temperature": rng.choice((0, 0.8))}
    body = {**_prompt(rng, models, 300), **options, "max_tokens": _tokens(rng)}
    return _ask("/v1/completions", "openai", body)


def short(rng: random.Random, models: Models) -> Ask:
    """One that costs next to nothing."""
    return _ask("/v1/completions", "openai", {"model": models.other, "prompt": text(rng, 5), "max_tokens": 4})


def responses(rng: random.Random, models: Models) -> Ask:
    model, said = _talk(rng, models)
    body = {"model": model, "input": said, "max_output_tokens": 15 + _tokens(rng), "store": False}
    return _ask("/v1/responses", "responses", {**body, "stream": rng.random() < 0.5})


def anthropic(rng: random.Random, models: Models) -> Ask:
    return _ask(
        "/v1/messages",
        "anthropic",
        {**_chat(rng, models), "max_tokens": _tokens(rng), "system": "Be brief."},
    )


def ollama(rng: random.Random, models: Models) -> Ask:
    options = {"num_predict": _tokens(rng), "temperature": 0.7, "repeat_penalty": 1.1}
    return _ask("/api/chat", "ollama", {**_chat(rng, models), "options": options})


def llamacpp(rng: random.Random, models: Models) -> Ask:
    return _ask("/completion", "llama.cpp", {**_prompt(rng, models), "n_predict": _tokens(rng)})


def schema(rng: random.Random, models: Models) -> Ask:
    """Structured output, each dialect's way."""
    turns = [{"role": "user", "content": f"Who are you? {text(rng, 20)}"}]
    openai = {"type": "json_schema", "json_schema": {"name": "who", "schema": SCHEMA, "strict": True}}
    stream = rng.random() < 0.5
    ways = (
        ("/v1/chat/completions", "openai", {"messages": turns, "response_format": openai, "max_tokens": 60}),
        ("/api/chat", "ollama", {"messages": turns, "format": SCHEMA, "options": {"num_predict": 60}}),
        ("/completion", "llama.cpp", {"prompt": "Who?", "json_schema": SCHEMA, "n_predict": 60}),
    )
    path, dialect, body = rng.choice(ways)
    return _ask(path, dialect, {"model": rng.choice(models[:2]), "stream": stream, **body})


def tools(rng: random.Random, models: Models) -> Ask:
    """A call that must be made."""
    turns = [{"role": "user", "content": "How is the weather in Paris?"}]
    shared = {"model": models.main, "messages": turns, "max_tokens": 60, "stream": rng.random() < 0.5}
    if rng.random() < 0.5:
        body = {**shared, "tools": [{"type": "function", "function": TOOL}], "tool_choice": "required"}
        return _ask("/v1/chat/completions", "openai", body)
    tool = {"name": TOOL["name"], "description": TOOL["description"], "input_schema": TOOL["parameters"]}
    return _ask("/v1/messages", "anthropic", {**shared, "tools": [tool], "tool_choice": {"type": "any"}})


def vectors(rng: random.Random, models: Models) -> Ask:
    model, said = _talk(rng, models, 40)
    texts = [said] + [text(rng, 10) for _ in range(rng.randrange(8))]
    if rng.random() < 0.5:
        return _ask("/v1/embeddings", "vectors", {"model": model, "input": texts})
    return _ask("/api/embed", "ollama vectors", {"model": model, "input": texts})


def tokens(rng: random.Random, models: Models) -> Ask:
    return _ask("/tokenize", "tokens", {"model": models.main, "content": text(rng, 2000)})


def guest(rng: random.Random, models: Models) -> Ask:
    """A model that is loaded for one request and leaves."""
    body = {"model": models.guest, "prompt": text(rng, 20), "stream": False, "keep_alive": 0, "raw": True,
            "options": {"num_predict": 4}}  # fmt: skip
    return _ask("/api/generate", "ollama", body)


def bad(rng: random.Random, models: Models) -> Ask:
    """What cannot be answered, in every dialect."""
    turns: Any = [{"role": "user", "content": "hi"}]
    path, dialect = rng.choice(
        (("/v1/chat/completions", "openai"), ("/v1/messages", "anthropic"), ("/api/chat", "ollama"))
    )
    good = {"model": models.main, "messages": turns, "max_tokens": 8}
    pattern = {"type": "string", "pattern": "(" * 50_000}
    openai = {"type": "json_schema", "json_schema": {"name": "x", "schema": pattern}}
    hostile = {"response_format": openai, "format": pattern,
               "output_format": {"type": "json_schema", "schema": pattern}}  # fmt: skip
    long = [{"role": "user", "content": "word " * 5000}]
    wrong: tuple[bytes, ...] = (
        b"{",
        b"\xff\xfe",
        b"[1]",
        b"[" * 100_000,
        json.dumps({**good, "model": "nobody:1b"}).encode(),
        json.dumps({**good, "messages": {"role": "user"}}).encode(),
        json.dumps({**good, "messages": long, "stream": True}).encode(),
        json.dumps({**good, "max_tokens": "many", "options": 3}).encode(),
        json.dumps({**good, "model": "../../etc/passwd"}).encode(),
        json.dumps({**good, **hostile}).encode(),
    )
    return Ask(path, dialect, rng.choice(wrong), wanted=End.REFUSED)


def limited(rng: random.Random, models: Models) -> Ask:
    """With a key that may ask so many times a minute and no more."""
    return replace(short(rng, models), limited=True)


KINDS: dict[str, tuple[int, Callable[[random.Random, Models], Ask]]] = {
    "OpenAI chat": (16, openai_chat),
    "OpenAI completions": (12, openai_completion),
    "OpenAI responses": (8, responses),
    "Anthropic messages": (12, anthropic),
    "Ollama chat": (12, ollama),
    "llama.cpp completion": (10, llamacpp),
    "schemas": (8, schema),
    "tools": (3, tools),
    "embeddings": (8, vectors),
    "tokens": (4, tokens),
    "bad input": (12, bad),
    "a limited key": (5, limited),
    "a model that comes and goes": (1, guest),
}
"""By name: how often among all, and how one is made."""


def some(rng: random.Random, models: Models) -> tuple[str, Ask]:
    """A request of a random kind, and the kind's name."""
    names = list(KINDS)
    name = rng.choices(names, [KINDS[each][0] for each in names])[0]
    return name, KINDS[name][1](rng, models)
