from __future__ import annotations

import json
from typing import Any

import pytest

from llmrun.api.openai.bodies import ChatBody, CompletionBody
from llmrun.api.openai.chat import to_request
from llmrun.api.openai.completions import to_requests
from llmrun.errors import LlmrunError
from llmrun.types import OutputFormat

SCHEMA = {"type": "object", "properties": {"é": {"type": "integer"}}}
FIELD = "response_format.json_schema.schema"


def _chat(response_format: object) -> ChatBody:
    messages = [{"role": "user", "content": "hi"}]
    return ChatBody.parse({"model": "m", "messages": messages, "response_format": response_format})


def _json_schema(**fields: object) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA, **fields}}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (None, None),
        ({"type": "text"}, None),
        ({"type": "json_object"}, OutputFormat(kind="json_object")),
        (
            {"type": "regex", "regex": "a+"},
            OutputFormat(kind="regex", text="a+", field="response_format.regex"),
        ),
        (
            {"type": "grammar", "grammar": 'root ::= "a"'},
            OutputFormat(kind="gbnf", text='root ::= "a"', field="response_format.grammar"),
        ),
        (
            {"type": "grammar", "grammar": "start: /a/", "syntax": "lark"},
            OutputFormat(kind="lark", text="start: /a/", field="response_format.grammar"),
        ),
        (
            {"type": "choice", "choices": ["a", "b"]},
            OutputFormat(kind="choice", choices=("a", "b"), field="response_format.choices"),
        ),
    ],
)
def test_response_format_becomes_the_output_format(given: object, wanted: OutputFormat | None) -> None:
    assert to_request(_chat(given), "r").output_format == wanted


@pytest.mark.parametrize("kind", ["json_object", "json_schema"])
def test_schema_in_llama_servers_place_is_the_same(kind: str) -> None:
    output = to_request(_chat({"type": kind, "schema": SCHEMA}), "r").output_format
    assert output is not None
    assert (output.kind, output.field) == ("json_schema", "response_format.schema")
    assert json.loads(output.text) == SCHEMA


def test_json_schema_without_a_name_is_taken() -> None:
    unnamed = {"type": "json_schema", "json_schema": {"schema": SCHEMA}}
    assert to_request(_chat(unnamed), "r").output_format is not None


@pytest.mark.parametrize("fields", [{}, {"strict": True}, {"strict": False, "description": "a thing"}])
def test_json_schema_strict_or_not_carries_the_schema_as_it_is(fields: dict[str, object]) -> None:
    output = to_request(_chat(_json_schema(**fields)), "r").output_format
    assert output is not None
    assert (output.kind, output.field, json.loads(output.text)) == ("json_schema", FIELD, SCHEMA)


def test_completions_take_it_too() -> None:
    body = CompletionBody.parse(
        {"model": "m", "prompt": ["a", "b"], "response_format": {"type": "json_object"}}
    )
    assert [request.output_format for request in to_requests(body, "r")] == [
        OutputFormat(kind="json_object")
    ] * 2


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ("json", "response_format"),
        ({}, "response_format.type"),
        ({"type": "json"}, "response_format.type"),
        ({"type": "json_schema"}, "response_format.json_schema"),
        ({"type": "json_schema", "json_schema": {"name": "x"}}, FIELD),
        (_json_schema(schema="{}"), FIELD),
        (_json_schema(schema=None), FIELD),
        (_json_schema(name="two words"), "response_format.json_schema.name"),
        (_json_schema(strict="yes"), "response_format.json_schema.strict"),
        (_json_schema(schemas={}), "response_format.json_schema.schemas"),
        ({**_json_schema(), "type": "json_object"}, "response_format.json_schema"),
        ({"type": "regex"}, "response_format.regex"),
        ({"type": "regex", "regex": ""}, "response_format.regex"),
        ({"type": "regex", "regex": "a", "syntax": "lark"}, "response_format.syntax"),
        ({"type": "choice", "choices": []}, "response_format.choices"),
        ({"type": "choice", "choices": [""]}, "response_format.choices.0"),
        ({"type": "json_object", "schema": 123}, "response_format.schema"),
        ({"type": "text", "schema": {}}, "response_format.schema"),
        ({**_json_schema(), "schema": {}}, "response_format.json_schema"),
    ],
)
def test_response_format_of_no_shape_is_refused_by_field(given: object, field: str) -> None:
    with pytest.raises(LlmrunError) as caught:
        _chat(given)
    assert (caught.value.kind.status, caught.value.field) == (400, field)
