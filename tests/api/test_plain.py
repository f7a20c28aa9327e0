from __future__ import annotations

from typing import Any

import pytest

from llmrun.api.plain import MAX_DEPTH, ObjectSchema, ObjectText, PlainObject
from llmrun.api.schema import Body
from llmrun.errors import LlmrunError


class Holder(Body):
    values: PlainObject | None = None
    schema_: ObjectSchema | None = None
    text: ObjectText = "{}"


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "fields",
    [
        {"values": {"a": nested(MAX_DEPTH - 1), "b": [2**63 - 1, -(2**63), 1.5, None, True]}},
        {"schema_": {}},
        {"schema_": {"type": "object", "properties": {"a": {}}}},
        {"text": '{"n": 12345678901234567890123, "s": "\\u00e9"}'},
    ],
)
def test_json_of_the_callers_making_goes_down_as_it_is(fields: dict[str, Any]) -> None:
    made = Holder.parse(fields)
    for name, value in fields.items():
        assert getattr(made, name) == value


@pytest.mark.parametrize("text", ["", "  \n"])
def test_no_text_is_an_empty_object(text: str) -> None:
    assert Holder.parse({"text": text}).text == "{}"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"values": {"a": nested(MAX_DEPTH + 1)}}, "nested more than"),
        ({"values": {"a": {"b": [2**63]}}}, "past 64 bits"),
        ({"schema_": True}, "JSON Schema of an object"),
        ({"schema_": {"type": ["object", "null"]}}, "JSON Schema of an object"),
        ({"schema_": {"minimum": 2**64}}, "past 64 bits"),
        ({"text": "[]"}, "JSON text of an object"),
        ({"text": '{"a": NaN}'}, "JSON text of an object"),
        ({"text": '{"a": ' * 10_000}, "JSON text of an object"),
    ],
)
def test_what_cannot_go_down_is_an_error_in_words(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(LlmrunError, match=words):
        Holder.parse(fields)
