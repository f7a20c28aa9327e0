"""Argument values that a model wrote as bare text, to JSON, by the schema of the tool's parameter."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]

_MAX_LITERAL = 100_000  # characters; Python's parser takes memory by the hundredfold of its text


def parameter_schema(parameters: Schema, key: str) -> Schema:
    """The schema of argument `key`; empty where the tool says nothing of it."""
    properties = parameters.get("properties")
    found = properties.get(key) if isinstance(properties, Mapping) else None
    if found is None:
        found = parameters.get("additionalProperties")
    return _resolved(found, parameters) if isinstance(found, Mapping) else {}


def is_text(schema: Schema) -> bool:
    """Whether the value can only be a string."""
    return _types(schema) == {"string"}


def json_of(text: str, schema: Schema) -> str:
    """JSON of the value that `text` means: JSON or a Python literal where the schema lets it be that, else a
    string."""
    types = _types(schema)
    if types == {"string"}:
        return dumps(text)
    for read in (_from_json, _from_python):
        value = read(text.strip())
        if value is not None and _fits(value[0], types):
            return dumps(value[0])
    return dumps(text)


def literal(text: str) -> str | None:
    """JSON of the JSON or Python literal `text`; None where it is neither."""
    value = _from_json(text) or _from_python(text)
    return None if value is None else dumps(value[0])


def dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _from_json(text: str) -> tuple[Any] | None:
    try:
        return (json.loads(text, parse_constant=_refuse),)
    except (ValueError, RecursionError):
        return None


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


class _Words(ast.NodeTransformer):
    """JSON's words, as Python writes them."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        words = {"true": True, "false": False, "null": None}
        return ast.Constant(words[node.id]) if node.id in words else node


def _from_python(text: str) -> tuple[Any] | None:
    if len(text) > _MAX_LITERAL:
        return None
    try:
        value = ast.literal_eval(_Words().visit(ast.parse(text, mode="eval")))
        return (json.loads(json.dumps(value, allow_nan=False)),)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


def _types(schema: Schema) -> set[str]:
    """The JSON types that the schema names at its top; empty: any."""
    named = schema.get("type")
    if isinstance(named, str):
        return {named}
    if isinstance(named, list):
        return set(named)
    values = schema["enum"] if isinstance(schema.get("enum"), list) else []
    if "const" in schema:
        values = [schema["const"]]
    if values:
        return {_type_of(value) for value in values}
    several = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(several, list):
        inner = [_types(item) for item in several if isinstance(item, Mapping)]
        return set().union(*inner) if all(inner) else set()
    return set()


def _type_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    kinds = {str: "string", int: "integer", float: "number", list: "array", dict: "object"}
    return kinds.get(type(value), "null")


def _fits(value: Any, types: set[str]) -> bool:
    kind = _type_of(value)
    return (
        not types
        or kind in types
        or (kind == "integer" and "number" in types)
        or (kind == "number" and "integer" in types and float(value).is_integer())
    )


def _resolved(schema: Schema, root: Schema) -> Schema:
    """`schema`, or what its `$ref` into the same document names."""
    for _ in range(8):
        target = schema.get("$ref")
        if not isinstance(target, str) or not target.startswith("#/"):
            break
        found: Any = root
        for step in target[2:].split("/"):
            found = found.get(step) if isinstance(found, Mapping) else None
        if not isinstance(found, Mapping):
            return {}
        schema = found
    return schema
