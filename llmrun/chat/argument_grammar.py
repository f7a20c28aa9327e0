"""A tool's schema to the grammar of its arguments, in whatever form a model writes them.

JSON arguments keep to the whole schema. The other forms have no place for all of JSON Schema; what one cannot
keep to is a `SchemaFault`, or left open where `exact` is False.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from llmrun.chat.json_schema import Schema, SchemaFault
from llmrun.chat.lark import Rules
from llmrun.chat.syntax import (
    Arguments,
    BareKeyArguments,
    JsonArguments,
    JsonType,
    NestedArguments,
    PythonArguments,
    TaggedArguments,
)

_NOTES = {"title", "description", "default", "examples", "$schema", "$defs", "definitions", "deprecated"}
_OBJECT = {"type", "properties", "required", "additionalProperties"} | _NOTES
_LENGTHS = {"minLength", "maxLength"}
_MAX_DEPTH = 20


def arguments(form: Arguments, schema: Schema, rules: Rules, *, exact: bool) -> str:
    """An expression for the arguments by `schema`, an object's."""
    if isinstance(form, JsonArguments):
        return rules.json(schema)
    writer = _Writer(form, schema, rules, exact)
    if isinstance(form, BareKeyArguments):
        return writer.bare(schema, "#", 0)
    return writer.members(schema, "#", 0)


class _Writer:
    def __init__(self, form: Arguments, root: Schema, rules: Rules, exact: bool) -> None:
        self._form = form
        self._root = root
        self._rules = rules
        self._exact = exact

    def members(self, schema: Schema, pointer: str, depth: int) -> str:
        """The properties of an object, in their order, without what stands around them."""
        self._only(schema, _OBJECT, pointer)
        required = schema.get("required", ())
        properties: Mapping[str, Any] = schema.get("properties") or {}
        if missing := [name for name in required if name not in properties]:
            raise SchemaFault(f"requires {missing[0]!r}, which is no property", pointer, "required")
        found = [
            (self._member(name, inner, f"{pointer}/properties/{name}", depth), name in required)
            for name, inner in properties.items()
        ]
        return _sequence(found, self._separator(), self._rules)

    def _member(self, name: str, schema: Any, pointer: str, depth: int) -> str:
        schema = self._resolved(schema if isinstance(schema, dict) else {}, pointer)
        literal = self._rules.literal
        if isinstance(self._form, TaggedArguments):
            kind = self._kind(schema, pointer) or "string"
            head = literal(f"{self._form.open}{name}{dict(self._form.between)[kind]}")
            return f"{head} {self._tagged(kind, schema, dict(self._form.close)[kind], pointer)}"
        if isinstance(self._form, PythonArguments):
            return f"{literal(name + '=')} {self._words(schema, pointer)}"
        if isinstance(self._form, NestedArguments):
            return self._nested(name, schema, pointer, depth)
        return f"{literal(name + ':')} {self.bare(schema, pointer, depth + 1)}"

    def _separator(self) -> str:
        if isinstance(self._form, TaggedArguments):
            return self._form.separator
        return {PythonArguments: ", ", BareKeyArguments: ","}.get(type(self._form), "")

    # --- values

    def _tagged(self, kind: JsonType, schema: Schema, close: str, pointer: str) -> str:
        if kind == "string":
            return self._text(schema, close, pointer)
        words = self._form.python if isinstance(self._form, TaggedArguments) else False
        value = self._words(schema, pointer) if words else self._json(schema)
        return f"{value} {self._rules.literal(close)}"

    def _text(self, schema: Schema, close: str, pointer: str) -> str:
        """Bare text and the marker that ends it."""
        values = schema.get("enum") or ([schema["const"]] if "const" in schema else None)
        if values is not None:
            texts = [value if isinstance(value, str) else json.dumps(value) for value in values]
            return self._rules.add(" | ".join(self._rules.literal(text + close) for text in texts))
        self._only(schema, {"type"} | _NOTES | _LENGTHS, pointer)
        if not self._exact and not _LENGTHS & schema.keys():
            return self._rules.until(close)
        least, most = schema.get("minLength", 0), schema.get("maxLength", "")
        return self._rules.until(close, f"(?s:.{{{least},{most}}})" if least or most != "" else "(?s:.*)")

    def _words(self, schema: Schema, pointer: str) -> str:
        """A value in Python's words where they are not JSON's."""
        kind = self._kind(schema, pointer)
        if kind == "boolean" and not {"enum", "const"} & schema.keys():
            return '("True" | "False")'
        return '"None"' if kind == "null" else self._json(schema)

    def _json(self, schema: Schema) -> str:
        shared: Schema = {name: self._root[name] for name in ("$defs", "definitions") if name in self._root}
        return self._rules.json({**shared, **schema})

    def _nested(self, name: str, schema: Schema, pointer: str, depth: int) -> str:
        """A value between tags named after its key."""
        assert isinstance(self._form, NestedArguments)
        prefix, kind = self._form.prefix, self._kind(schema, pointer) or "string"
        head, close = self._rules.literal(f"{prefix}<{name}>"), f"{prefix}</{name}>"
        self._deep(depth, pointer)
        if kind == "string":
            return f"{head} {self._text(schema, close, pointer)}"
        if kind == "object":
            return f"{head} {self.members(schema, pointer, depth + 1)} {self._rules.literal(close)}"
        if kind == "array":
            item = self._item(schema, pointer)
            inner = self._rules.add(self._nested("item", item, f"{pointer}/items", depth + 1))
            return f"{head} {_times(inner, schema)} {self._rules.literal(close)}"
        return f"{head} {self._json(schema)} {self._rules.literal(close)}"

    def bare(self, schema: Schema, pointer: str, depth: int) -> str:
        """JSON with bare keys and marked strings."""
        assert isinstance(self._form, BareKeyArguments)
        kind = self._kind(schema, pointer) or "string"
        self._deep(depth, pointer)
        if kind == "object":
            return f'"{{" {self.members(schema, pointer, depth + 1)} "}}"'
        if kind == "string":
            quote = self._rules.literal(self._form.quote)
            return f"{quote} {self._text(schema, self._form.quote, pointer)}"
        if kind == "array":
            item = self._item(schema, pointer)
            inner = self._rules.add(self.bare(item, f"{pointer}/items", depth + 1))
            return f'"[" {_listed(inner, schema)} "]"'
        return self._json(schema)

    def _item(self, schema: Schema, pointer: str) -> Schema:
        self._only(schema, {"type", "items", "minItems", "maxItems"} | _NOTES, pointer)
        item = schema.get("items")
        return self._resolved(item if isinstance(item, dict) else {}, f"{pointer}/items")

    # --- what a form has a place for

    def _kind(self, schema: Schema, pointer: str) -> JsonType | None:
        """The one type of a value; None: it may be of several, or of any."""
        named = schema.get("type")
        values = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
        if isinstance(named, str):
            return _TYPES.get(named)
        if named is None and values and all(isinstance(value, str) for value in values):
            return "string"
        if self._exact:
            raise SchemaFault(
                "names no single type, which this model's way to write arguments needs", pointer, "type"
            )
        return None

    def _only(self, schema: Schema, known: set[str], pointer: str) -> None:
        if self._exact and (other := sorted(schema.keys() - known)):
            raise SchemaFault("cannot be kept to in this model's way to write arguments", pointer, other[0])

    def _deep(self, depth: int, pointer: str) -> None:
        if depth > _MAX_DEPTH:
            raise SchemaFault(f"is nested more than {_MAX_DEPTH} deep", pointer)

    def _resolved(self, schema: Schema, pointer: str) -> Schema:
        """`schema`, or what its reference within the same document names."""
        for _ in range(_MAX_DEPTH):
            target = schema.get("$ref")
            if not isinstance(target, str):
                return schema
            found: Any = self._root
            for step in target.removeprefix("#").split("/")[1:]:
                found = (
                    found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
                )
            schema = found if isinstance(found, dict) else {}
        raise SchemaFault("refers to itself", pointer, "$ref")


_TYPES: dict[str, JsonType] = {
    "string": "string", "integer": "integer", "number": "number", "boolean": "boolean",
    "null": "null", "array": "array", "object": "object",
}  # fmt: skip


def _times(item: str, schema: Schema, less: int = 0) -> str:
    """`item` as often as a list by `schema` may hold it, less the first `less`."""
    least, most = max(0, schema.get("minItems", 0) - less), schema.get("maxItems")
    return f"{item}{{{least},{'' if most is None else max(least, most - less)}}}"


def _listed(item: str, schema: Schema) -> str:
    """The same with commas between."""
    if schema.get("maxItems") == 0:
        return '""'
    rest = _times(f'("," {item})', schema, 1)
    return f"{item} {rest}" if schema.get("minItems") else f"({item} {rest})?"


def _sequence(items: Sequence[tuple[str, bool]], separator: str, rules: Rules) -> str:
    """An expression for `items` in order, those that are not required left out or not, with the separator
    between any two that stand."""
    between = f"{rules.literal(separator)} " if separator else ""
    first, later = '""', '""'  # what comes where nothing stands yet, and where something does
    for item, required in reversed(items):
        body = rules.add(item)
        behind = rules.add(later)
        begun = f"{body} {behind}"
        first = rules.add(begun if required else f"{begun} | {first}")
        later = f"{between}{body} {behind}" if required else f"{between}{body} {behind} | {behind}"
    return first if items else '""'
