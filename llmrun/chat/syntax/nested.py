"""Reading arguments whose values nest in tags named after their keys (MiniMax M3), out as JSON.

Numbers, words and strings look alike in it, and so do an empty string, an empty list and null: the schema
of the parameter tells.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from llmrun.chat.syntax import tagged, typed
from llmrun.chat.syntax.source import Out, Reading, Source

_MAX_DEPTH = 100


def read(
    source: Source, prefix: str, parameters: typed.Schema, ends: Sequence[str], out: Out
) -> Reading[bool]:
    """Read arguments up to one of `ends`; `out` gets JSON, argument by argument. False where they stop being
    arguments, or the text ends."""
    out("{")
    before = ""
    while (key := (yield from _tag(source, prefix))) is not None:
        text = yield from _value(source, prefix, typed.parameter_schema(parameters, key), key, 0)
        if text is None:
            return False
        out(f"{before}{typed.dumps(key)}: {text}")
        before = ", "
    if not (yield from tagged.at_end(source, ends)):
        return False
    out("}")
    return True


def _tag(source: Source, prefix: str) -> Reading[str | None]:
    """Read an opening tag, where one without attributes stands; its name."""
    length = yield from source.matches(f"{prefix}<")
    if not length or (yield from source.peek(length)) == "/":
        return None
    source.take(length)
    name: list[str] = []
    if (yield from source.until([">"], name.append)) is None:
        return None
    return "".join(name)


def _value(source: Source, prefix: str, schema: typed.Schema, key: str, depth: int) -> Reading[str | None]:
    """Read a value and its closing tag; its JSON."""
    close = f"{prefix}</{key}>"
    parts: list[tuple[str, str]] = []
    while (name := (yield from _tag(source, prefix))) is not None:
        inner = typed.parameter_schema(schema, name)
        if name == "item" and isinstance(schema.get("items"), dict):
            inner = schema["items"]
        value = None
        if depth < _MAX_DEPTH:
            value = yield from _value(source, prefix, inner, name, depth + 1)
        if value is None:
            return None
        parts.append((name, value))
    text: list[str] = []
    if (yield from source.until([close], text.append)) is None:
        return None
    if not parts:
        return _scalar("".join(text), schema)
    if "".join(text).strip():
        return None
    if all(name == "item" for name, _ in parts) and schema.get("type") != "object":
        return f"[{', '.join(value for _, value in parts)}]"
    return "{" + ", ".join(f"{typed.dumps(name)}: {value}" for name, value in parts) + "}"


def _scalar(text: str, schema: typed.Schema) -> str:
    empty: dict[Any, str] = {"array": "[]", "object": "{}", "null": "null"}
    if not text and schema.get("type") in empty:
        return empty[schema["type"]]
    return typed.json_of(text, schema) if text else json.dumps("")
