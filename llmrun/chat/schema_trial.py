"""Looks for a schema's faults in a process of its own, which can be ended.

Compiling most schemas takes a millisecond. A few dozen characters can also ask for the intersection of
twenty patterns, or for the multiples of a large prime, of which each remainder is a state; that takes for
ever and cannot be stopped inside a process. Run as a program, this reads a schema on stdin and writes its
fault on stdout, or null.
"""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal

import msgspec
from llguidance import LLMatcher, LLTokenizer

from llmrun.chat import json_schema
from llmrun.chat.json_schema import Schema, SchemaFault

SECONDS = 0.9
# Up to here a fault is found within milliseconds, whatever the schema says.
_FEW_VALUES = 2000
_FEW_PATTERNS = 5
_FEW_REMAINDERS = 1000
_MATCHING = ("pattern", "format", "multipleOf")
_COMBINING = frozenset({"anyOf", "oneOf", "$ref"})
_APART = frozenset({"$defs", "definitions", "title", "description", "default", "discriminator", "$schema"})


def fault_of(text: str, schema: Schema) -> SchemaFault | None:
    """What keeps a schema, parsed from `text`, from being compiled; None: nothing, or only its size."""
    if _is_light(schema):
        return json_schema.locate(schema)
    try:
        done = subprocess.run(
            [sys.executable, "-m", __name__],
            input=text.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return SchemaFault(
            "takes too long to compile: simplify its patterns, multiples and combinations", "#"
        )
    if done.returncode != 0:
        return SchemaFault("is more than llguidance can compile", "#")
    return msgspec.json.decode(done.stdout, type=SchemaFault | None)


def _is_light(schema: Schema) -> bool:
    if json_schema.count_values(schema) > _FEW_VALUES:
        return False
    parts = [part for _, part in json_schema.parts(schema)]
    if any(_remainders(part) > _FEW_REMAINDERS for part in parts):
        return False
    if not any(map(_intersects, parts)):
        return True
    return sum(keyword in part for part in parts for keyword in _MATCHING) <= _FEW_PATTERNS


def _intersects(part: Schema) -> bool:
    """Whether one value has to satisfy more than one part of the schema."""
    if "allOf" in part or len(part.get("patternProperties", ())) > _FEW_PATTERNS:
        return True
    return not _COMBINING.isdisjoint(part) and len(part.keys() - _APART) > 1


def _remainders(part: Schema) -> int:
    """How many a number of this part can leave, but for factors of ten."""
    multiple = part.get("multipleOf", 0)
    if isinstance(multiple, bool) or not isinstance(multiple, int | float):
        return 0  # which is a fault of its own
    digits = Decimal(str(multiple)).normalize().as_tuple().digits
    return int("".join(map(str, digits)))


def _trial(schema: Schema) -> SchemaFault | None:
    """Its fault, also one that shows only when its automata are made: those of multiples are, at once."""
    fault = json_schema.locate(schema)
    if fault is None and any(map(_remainders, (part for _, part in json_schema.parts(schema)))):
        LLMatcher(LLTokenizer("byte"), json_schema.grammar(schema), log_level=0).compute_bitmask()
    return fault


def main() -> None:
    schema = json_schema.parse(sys.stdin.buffer.read().decode())
    sys.stdout.buffer.write(msgspec.json.encode(_trial(schema)))


if __name__ == "__main__":
    main()
