"""Looks for a schema's faults in a process of its own, which can be ended.

Compiling most schemas takes a millisecond. A few dozen characters can also ask for the intersection of
twenty patterns, which takes for ever and cannot be stopped inside a process. Run as a program, this
reads a schema on stdin and writes its fault on stdout, or null.
"""

from __future__ import annotations

import subprocess
import sys

import msgspec

from llmrun.chat import json_schema
from llmrun.chat.json_schema import Schema, SchemaFault

SECONDS = 0.9
# Up to here a fault is found within milliseconds, whatever the schema says.
_FEW_VALUES = 2000
_FEW_PATTERNS = 5
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
        return SchemaFault("takes too long to compile: simplify its patterns and combinations", "#")
    if done.returncode != 0:
        return SchemaFault("is more than llguidance can compile", "#")
    return msgspec.json.decode(done.stdout, type=SchemaFault | None)


def _is_light(schema: Schema) -> bool:
    if json_schema.count_values(schema) > _FEW_VALUES:
        return False
    parts = [part for _, part in json_schema.parts(schema)]
    if not any(map(_intersects, parts)):
        return True
    return sum(keyword in part for part in parts for keyword in _MATCHING) <= _FEW_PATTERNS


def _intersects(part: Schema) -> bool:
    """Whether one value has to satisfy more than one part of the schema."""
    if "allOf" in part or len(part.get("patternProperties", ())) > _FEW_PATTERNS:
        return True
    return not _COMBINING.isdisjoint(part) and len(part.keys() - _APART) > 1


def main() -> None:
    schema = json_schema.parse(sys.stdin.buffer.read().decode())
    sys.stdout.buffer.write(msgspec.json.encode(json_schema.locate(schema)))


if __name__ == "__main__":
    main()
