"""Structured output of the real model: through the official client, curl-like requests and the command."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import jsonschema
import openai
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from llmrun.config import DEFAULT_MODEL
from tests.real.daemons import Daemon
from tests.support.formats import schemas

pytestmark = pytest.mark.real

ASK = {"role": "user", "content": "Invent a person. Then explain in words what you did."}
PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "phone": {"type": "string", "pattern": "^\\d{3}-\\d{4}$"},
        "pets": {"type": "array", "items": {"$ref": "#/$defs/pet"}, "minItems": 1, "maxItems": 2},
    },
    "required": ["name", "age", "phone", "pets"],
    "additionalProperties": False,
    "$defs": {
        "pet": {
            "type": "object",
            "properties": {"kind": {"$ref": "#/$defs/kind"}},
            "required": ["kind"],
            "additionalProperties": False,
        },
        "kind": {"enum": ["cat", "llama 🦙"]},
    },
}


@pytest.fixture(scope="module")
def client(daemon: Daemon) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{daemon.url}/v1", api_key="none", max_retries=0, timeout=100)


def _format(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "it", "schema": schema, "strict": True}}


def _post(daemon: Daemon, response_format: object, **more: object) -> httpx.Response:
    body = {"model": DEFAULT_MODEL, "messages": [ASK], "max_tokens": 200, "response_format": response_format}
    return daemon.http.post("/v1/chat/completions", json={**body, **more})


def test_schema_streamed_and_not_validate_and_are_the_same(client: openai.OpenAI) -> None:
    asked: dict[str, Any] = {
        "model": DEFAULT_MODEL,
        "messages": [ASK],
        "temperature": 0,
        "response_format": _format(PERSON),
    }
    whole = client.chat.completions.create(**asked).choices[0]
    chunks = [chunk.choices[0] for chunk in client.chat.completions.create(**asked, stream=True)]
    said = "".join(chunk.delta.content or "" for chunk in chunks)
    assert said == whole.message.content
    assert (whole.finish_reason, chunks[-1].finish_reason) == ("stop", "stop")
    jsonschema.validate(json.loads(said), PERSON)
    assert all("\N{REPLACEMENT CHARACTER}" not in (chunk.delta.content or "") for chunk in chunks)


def test_answers_to_any_schema_validate_greedy_and_sampled(daemon: Daemon) -> None:
    asked = st.tuples(schemas, st.integers(0, 2**31), st.sampled_from([0.0, 1.5]))
    valid = 0

    def answer(schema: dict[str, Any], seed: int, temperature: float) -> bool:
        """Whether there is one: a schema that nothing fits is refused, and one of characters that the
        vocabulary lacks."""
        wanted = {"seed": seed, "temperature": temperature, "max_tokens": 450}
        reply = _post(daemon, _format(schema), **wanted)
        if reply.status_code == 400:
            error = reply.json()["error"]
            assert error["param"] == "response_format.json_schema.schema", schema
            assert "cannot be compiled" in error["message"] or "has no tokens" in error["message"], error
            return False
        (choice,) = reply.json()["choices"]
        assert choice["finish_reason"] == "stop", (schema, choice)
        jsonschema.validate(json.loads(choice["message"]["content"]), schema)
        return True

    @settings(max_examples=30, phases=[Phase.generate])
    @given(st.lists(asked, min_size=8, max_size=8))
    def answers(requests: list[tuple[dict[str, Any], int, float]]) -> None:
        nonlocal valid
        with ThreadPoolExecutor(8) as pool:
            valid += sum(pool.map(lambda request: answer(*request), requests))

    answers()
    assert valid >= 200


def test_sampled_answers_beside_free_ones_validate(daemon: Daemon) -> None:
    def ask(seed: int) -> list[str]:
        free = seed % 2
        wanted = {"type": "text"} if free else _format(PERSON)
        reply = _post(
            daemon, wanted, seed=seed, n=1 if free else 2, max_tokens=20 if free else 200, temperature=1.0
        ).json()
        return [choice["message"]["content"] for choice in reply["choices"]]

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(ask, range(4)))
    for texts in answers[::2]:
        for text in texts:
            jsonschema.validate(json.loads(text), PERSON)


def test_json_object_ends_at_its_closing_brace(daemon: Daemon) -> None:
    prompt = [
        {"role": "user", "content": "Give the JSON object with the key 'color' for a red apple, then talk."}
    ]
    reply = _post(daemon, {"type": "json_object"}, messages=prompt, temperature=0).json()["choices"][0]
    assert reply["finish_reason"] == "stop"
    assert isinstance(json.loads(reply["message"]["content"]), dict)
    assert reply["message"]["content"].endswith("}")


def test_hostile_schema_is_refused_by_place_while_others_go_on(daemon: Daemon) -> None:
    deep = '{"type":"array","items":' * 50_000 + "{}" + "}" * 50_000
    explosion = {"allOf": [{"type": "string", "pattern": f"(.*{i}.*){{10}}"} for i in range(40)]}
    brackets = {"properties": {"a": {"type": "string", "pattern": "(" * 50_000}}}
    body = {"model": DEFAULT_MODEL, "messages": [ASK], "max_tokens": 8}
    raw = json.dumps({**body, "response_format": _format({})}).replace('"schema": {}', f'"schema": {deep}')
    with ThreadPoolExecutor(4) as pool:
        replies = [
            pool.submit(
                daemon.http.post,
                "/v1/chat/completions",
                content=raw.encode(),
                headers={"Content-Type": "application/json"},
            ),
            *(pool.submit(_post, daemon, _format(schema)) for schema in (explosion, brackets)),
        ]
        began = time.monotonic()
        assert daemon.http.post("/v1/chat/completions", json=body).status_code == 200
        assert time.monotonic() - began < 10
    assert [reply.result().status_code for reply in replies] == [400, 400, 400]
    error = replies[2].result().json()["error"]
    assert error["param"] == "response_format.json_schema.schema"
    assert "'pattern' at #/properties/a" in error["message"]


def test_enum_of_very_many_values_holds_up_no_other_client(daemon: Daemon) -> None:
    values = [f"value number {i}" for i in range(20_000)]
    short = {"model": DEFAULT_MODEL, "messages": [ASK], "max_tokens": 2}
    assert daemon.http.post("/v1/chat/completions", json=short).status_code == 200
    with ThreadPoolExecutor(1) as pool:
        large = pool.submit(_post, daemon, _format({"enum": values}))
        for _ in range(5):
            began = time.monotonic()
            assert daemon.http.post("/v1/chat/completions", json=short).status_code == 200
            assert time.monotonic() - began < 5
    reply = large.result()
    if reply.status_code == 200:
        assert json.loads(reply.json()["choices"][0]["message"]["content"]) in values
    else:
        assert reply.json()["error"]["param"] == "response_format.json_schema.schema"


def test_run_schema_prints_only_json(daemon: Daemon) -> None:
    done = daemon.run(
        "run", DEFAULT_MODEL, "--schema", json.dumps(PERSON), "--temperature", "0", ASK["content"]
    )
    jsonschema.validate(json.loads(done.stdout), PERSON)
    assert done.stdout.count(b"\n") == 1
