"""What structured output costs and saves. Prints two Markdown tables.

    .venv/bin/python scripts/bench/structured.py [MODEL.gguf]

The first: a step's mask and choice with few, some and nearly all tokens allowed, beside a free choice,
on random logits; best of many, in milliseconds. The second: the same JSON object by greedy decoding
with and without forced tokens, in steps of the engine; counts, so the machine does not matter.
"""

from __future__ import annotations

import json
import sys
import time
import timeit
from collections.abc import Callable
from pathlib import Path

import numpy as np

from llmrun.chat.output_grammar import grammar_of
from llmrun.chat.prompt import Prompter
from llmrun.config import DEFAULT_MODEL, Paths
from llmrun.engine import Constraint, Engine, EngineRequest, Grammars
from llmrun.llama import Context, ContextSettings, Model, SamplerChain, guide_tokenizer
from llmrun.store import Store
from llmrun.types import (
    Event,
    Failed,
    Finished,
    GenerateRequest,
    Message,
    OutputFormat,
    SamplingParams,
    Text,
)

VOCABULARIES = (49_152, 151_936)
SHARES = {"20 tokens": 20, "one in 20": 0.05, "nearly all": 0.95}
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 30},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "email": {"type": "string", "format": "email"},
        "occupation": {"enum": ["teacher", "doctor", "farmer", "pilot"]},
        "married": {"type": "boolean"},
        "address": {
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            "required": ["street", "city"],
            "additionalProperties": False,
        },
    },
    "required": ["name", "age", "email", "occupation", "married", "address"],
    "additionalProperties": False,
}


class Unforced(Constraint):
    """The same grammar by masks alone."""

    def __init__(self, inner: Constraint) -> None:
        self.__dict__.update(inner.__dict__)

    def forced(self) -> list[int]:
        return []


def best(work: Callable[[], object]) -> float:
    return min(timeit.repeat(work, number=20, repeat=60)) / 20 * 1e3


def choices(model: Model) -> None:
    """The table of masks: unpacking one and sampling among what it allows."""
    print("| vocabulary | free | " + " | ".join(SHARES) + " |\n" + "| --- " * (len(SHARES) + 2) + "|")
    chain = SamplerChain(model.vocab, SamplingParams(), seed=1, ctx=512)
    rng = np.random.default_rng(0)
    for size in VOCABULARIES:
        logits = rng.standard_normal(size).astype(np.float32)

        def free(logits: np.ndarray = logits) -> None:
            chain.accept(chain.pick(logits))

        cells = [f"{best(free):.2f}"]
        for share in SHARES.values():
            chance = share / size if share > 1 else share
            packed = np.packbits(rng.random(size) < chance, bitorder="little")
            packed[0] |= 1

            def among(packed: np.ndarray = packed, logits: np.ndarray = logits, size: int = size) -> None:
                bits = np.unpackbits(packed, count=size, bitorder="little")
                chain.accept(chain.pick_among(np.flatnonzero(bits.view(bool)), logits))

            cells.append(f"{best(among):.2f}")
        print(f"| {size} | " + " | ".join(cells) + " |")
    chain.close()


def steps(model: Model, wrapped: bool) -> tuple[int, int, str]:
    """Steps and tokens of one object, and its text."""
    events: list[Event] = []

    def emit(items: list[tuple[str, Event]]) -> None:
        events.extend(event for _, event in items)
        if isinstance(events[-1], Finished | Failed):
            engine.stop()

    context = Context(model, ContextSettings(ctx=1024, batch=256, slots=2, threads=2, threads_batch=2))
    engine = Engine(context, batch=256, parallel=1, emit=emit, clock=time.monotonic)
    grammars = Grammars(lambda: guide_tokenizer(model.vocab))
    wanted = OutputFormat(kind="json_schema", text=json.dumps(PERSON))
    constraints = grammars.start(grammar_of(wanted), 1)
    asked = GenerateRequest(id="1", model="", messages=(Message(role="user", content="Invent a person."),))
    prompt = Prompter(model.chat_template, model.vocab).encode(asked)
    engine.submit(
        EngineRequest(
            id="1",
            prompt=tuple(prompt),
            params=SamplingParams(temperature=0),
            seed=1,
            arrived=time.monotonic(),
            constraints=tuple(map(Unforced, constraints)) if wrapped else constraints,
        )
    )
    engine.run()
    last = events[-1]
    assert isinstance(last, Finished), last
    context.close()
    return (
        engine.counters.steps,
        last.usage.completion,
        "".join(e.text for e in events if isinstance(e, Text)),
    )


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Store(Paths.find()).resolve(DEFAULT_MODEL).path
    model = Model(path)
    choices(model)
    plain, forced = steps(model, wrapped=True), steps(model, wrapped=False)
    print("\n| | steps | tokens |\n| --- | --- | --- |")
    print(f"| by masks alone | {plain[0]} | {plain[1]} |\n| with forced tokens | {forced[0]} | {forced[1]} |")
    print(f"\nthe same text: {plain[2] == forced[2]}")
    model.close()


if __name__ == "__main__":
    main()
