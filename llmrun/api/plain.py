"""JSON of the caller's own making that goes down as it is: template variables, schemas, arguments.

A JSON value in, the same value out, or an error where it could not cross a pipe.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from pydantic import AfterValidator, BeforeValidator, PlainValidator, WithJsonSchema

from llmrun.api.schema import wrong

MAX_DEPTH = 64


def plain_json(value: object, depth: int = 0) -> object:
    """`value` if it is not too deep and its whole numbers are within 64 bits."""
    if depth > MAX_DEPTH:
        raise wrong(f"is nested more than {MAX_DEPTH} deep")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise wrong("holds a number past 64 bits")
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        plain_json(item, depth + 1)
    return value


PlainObject = dict[str, Annotated[object, BeforeValidator(plain_json)]]
"""Any object."""


def _object_schema(value: object) -> object:
    if not isinstance(value, dict) or value.get("type", "object") != "object":
        raise wrong("should be the JSON Schema of an object")
    return plain_json(value)


ObjectSchema = Annotated[
    dict[str, object], PlainValidator(_object_schema), WithJsonSchema({"type": "object"})
]
"""A JSON Schema of type object, by its outside: whether it can be kept to is known where the model is."""


def _object_text(text: str) -> str:
    if not text.strip():
        return "{}"
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise wrong("should be the JSON text of an object")
    return text


ObjectText = Annotated[str, AfterValidator(_object_text)]
"""A JSON object as text; nothing stands for an empty one."""
