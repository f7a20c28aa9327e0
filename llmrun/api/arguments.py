"""The arguments of a tool call: an object in some dialects, JSON text in the daemon."""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import PlainValidator, WithJsonSchema
from pydantic_core import from_json

from llmrun.api.oneline import Json
from llmrun.api.schema import wrong


def _text(value: object) -> str:
    if not isinstance(value, dict):
        raise wrong("should be an object")
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        raise wrong("is nested too deeply") from None


Arguments = Annotated[str, PlainValidator(_text), WithJsonSchema({"type": "object"})]
"""An object in a body; here its JSON text."""


def partial_object(text: str) -> Json:
    """The object that a call's JSON text is. Where the length limit cut it: of it, what is complete."""
    value: Json = from_json(text, allow_partial=True) if text else {}
    return value


def whole_object(text: str) -> Json | None:
    """The same; None where it was cut."""
    try:
        value: Json = from_json(text)
    except ValueError:
        return None
    return value
