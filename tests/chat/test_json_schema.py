from __future__ import annotations

import json
import time
from typing import Any

import pytest

from llmrun.chat import json_schema
from llmrun.chat.json_schema import MAX_DEPTH, SchemaFault, locate, parse


def fault_of(schema: Any) -> SchemaFault:
    """What `parse` or, after it, llguidance says to a schema."""
    text = schema if isinstance(schema, str) else json.dumps(schema)
    try:
        fault = locate(parse(text))
    except SchemaFault as error:
        return error
    assert fault is not None, "the schema was taken"
    return fault


@pytest.mark.parametrize(
    ("schema", "pointer", "keyword", "what"),
    [
        ({"not": {}}, "#", "not", "not supported"),
        ({"properties": {"a": {"uniqueItems": True}}}, "#/properties/a", "uniqueItems", "not supported"),
        ({"$defs": {"q": {"if": {}}}, "$ref": "#/$defs/q"}, "#/$defs/q", "if", "not supported"),
        ({"items": [{}], "additionalItems": False}, "#", "additionalItems", "not supported"),
        ({"x-guidance": {"lenient": True}}, "#", "x-guidance", "not supported"),
        ({"minLenght": 3}, "#", "minLenght", "did you mean 'minLength'"),
        ({"anyOf": [{}, {"nullable": True}]}, "#/anyOf/1", "nullable", "not supported"),
        ({"minItems": 3, "maxItems": 2}, "#", "minItems", "is 3, but maxItems is 2"),
        ({"properties": {"a": {"minimum": 3, "maximum": 2.5}}}, "#/properties/a", "minimum", "is 3, but"),
        ({"minimum": 3, "exclusiveMinimum": True}, "#", "exclusiveMinimum", "should be a number"),
        (
            {"properties": {"a/b~c": {"items": {"type": "string", "pattern": "(?=x)a"}}}},
            "#/properties/a~1b~0c/items",
            "pattern",
            "look-ahead",
        ),
        ({"properties": {"a": {"type": "string", "pattern": "("}}}, "#/properties/a", "pattern", "unclosed"),
        ({"properties": {"a": {"type": "string", "format": "zzz"}}}, "#/properties/a", "format", "zzz"),
        ({"properties": {"a": {"$ref": "#/$defs/no"}}}, "#/properties/a", "$ref", "does not exist"),
        ({"properties": {"a": {"$ref": "http://127.0.0.1/x"}}}, "#/properties/a", "$ref", "not present"),
        ({"prefixItems": [{}, {"type": "strin"}]}, "#/prefixItems/1", "type", "Invalid type"),
        ({"properties": {"a": {"minLength": "3"}}}, "#/properties/a", "minLength", "Expected positive"),
        ({"oneOf": [{"type": "string"}, {"const": "a"}]}, "#", "oneOf", "oneOf"),
        (
            {"required": ["a"], "properties": {"a": {"enum": []}}, "type": "object"},
            "#/properties/a",
            "enum",
            "",
        ),
        ({"type": "object", "required": ["a"], "properties": {"a": False}}, "#", "required", "'a'"),
        ({"items": {"const": {"a": [2**53 + 1]}}}, "#/items", "const", "15 digits"),
        ({"minimum": -(2**60)}, "#", "minimum", "15 digits"),
        ({"enum": [1801439850948199.0]}, "#", "enum", "15 digits"),
        ({"const": 1e-30}, "#", "const", "15 digits"),
        ([1], "#", None, "not an object"),
        ("{", "#", None, "not JSON"),
        ("", "#", None, "not JSON"),
    ],
)
def test_schema_that_cannot_be_kept_to_names_pointer_and_keyword(
    schema: Any, pointer: str, keyword: str | None, what: str
) -> None:
    fault = fault_of(schema)
    assert (fault.pointer, fault.keyword) == (pointer, keyword)
    assert what in fault.what


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"title": "A", "description": "b", "default": 1, "examples": [1], "$comment": "c", "x-order": 3},
        {"properties": {"not": {"type": "string"}, "minLenght": {}}},
        {"const": {"not": 1, "minItems": 3, "maxItems": 1}},
        {"enum": [{"properties": {"uniqueItems": 1}}]},
        {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        {"type": "string", "pattern": "^(?:a|b)$"},
        {"$ref": "#"},
        {"enum": [0, -0.0, 0.1, 1e22, 123456789012345, True, 1.5e-7]},
        {"$defs": {"c": {"enum": ["a"]}}, "type": "array", "items": {"$ref": "#/$defs/c"}},
    ],
)
def test_schema_that_can_be_kept_to_has_no_fault(schema: dict[str, Any]) -> None:
    assert locate(parse(json.dumps(schema))) is None


@pytest.mark.parametrize(
    "text",
    [
        '{"type":"array","items":' * 50_000 + "{}" + "}" * 50_000,
        '{"type":"array","items":' * (MAX_DEPTH + 1) + "{}" + "}" * (MAX_DEPTH + 1),
        '{"const":' + "[" * 3000 + "]" * 3000 + "}",
        '{"const":' * 900 + "1" + "}" * 900,
        json.dumps({"enum": [{"a": i} for i in range(20_000)]}),
        json.dumps({"properties": {"z": {"type": "string", "pattern": "(" * 50_000}}}),
        json.dumps({"const": "x" * 2_000_000}),
    ],
    ids=["deep", "deeper than it may be", "deep constant", "deep objects", "wide", "brackets", "long"],
)
def test_hostile_schema_is_refused_at_once(text: str) -> None:
    began = time.process_time()
    fault = fault_of(text)
    assert time.process_time() - began < 1
    assert len(fault.what) < 300


def test_locate_stops_after_so_many_trials() -> None:
    wide = {"properties": {f"p{i}": {"type": "string"} for i in range(900)}}
    wide["properties"]["last"] = {"type": "string", "format": "zzz"}
    fault = fault_of(wide)
    assert (fault.pointer, "zzz" in fault.what) == ("#", True)


def test_every_keyword_claimed_is_one_that_llguidance_reads() -> None:
    """A keyword that llguidance did not know would be passed over: a wrong value for it is a complaint."""
    told = {"$id", "$anchor", "$schema", "$defs", "definitions"}  # resolved by references, not enforced
    for keyword in sorted(json_schema.HONOURED - told - {"const", "enum", "type", "required", "format"}):
        wrong = {
            "type": ["object", "array", "string", "number"],
            keyword: 1.5 if "Of" not in keyword else "x",
        }
        if keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"):
            wrong[keyword] = "x"
        assert locate(wrong) is not None, keyword


def test_parse_number_beyond_any_double_is_a_fault() -> None:
    with pytest.raises(SchemaFault, match="15 digits"):
        parse(json.dumps({"type": "integer", "multipleOf": 10**400}))
