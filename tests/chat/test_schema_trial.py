from __future__ import annotations

import json
import time
from typing import Any

import pytest

from llmrun.chat import schema_trial
from llmrun.chat.json_schema import SchemaFault, parse
from llmrun.chat.schema_trial import SECONDS, fault_of


def _fault(schema: dict[str, Any]) -> SchemaFault | None:
    text = json.dumps(schema)
    return fault_of(text, parse(text))


def _intersection(count: int) -> dict[str, Any]:
    return {"allOf": [{"type": "string", "pattern": f"(.*{i}.*){{10}}"} for i in range(count)]}


def _chain(count: int) -> dict[str, Any]:
    """The same intersection by references."""
    defs = {
        f"d{i}": {"type": "string", "pattern": f"(.*{i}.*){{10}}", "$ref": f"#/$defs/d{i + 1}"}
        for i in range(count)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{count}": {"type": "string"}}}


def _nest(count: int) -> dict[str, Any]:
    """The same by choices of one."""
    schema: dict[str, Any] = {"type": "string"}
    for i in range(count):
        schema = {"type": "string", "pattern": f"(.*{i}.*){{10}}", "anyOf": [schema]}
    return schema


def _number(**keywords: object) -> dict[str, Any]:
    return {"type": "object", "properties": {"n": {"type": "number", **keywords}}}


@pytest.mark.parametrize(
    "schema",
    [
        *(_intersection(40), _chain(30), _nest(30)),
        _number(multipleOf=99999989),
        _number(allOf=[{"multipleOf": 9973}, {"multipleOf": 9967}]),
    ],
)
def test_fault_of_exploding_patterns_ends_in_bounded_time(schema: dict[str, Any]) -> None:
    began = time.monotonic()
    fault = _fault(schema)
    assert time.monotonic() - began < SECONDS + 5
    assert fault is not None
    assert "too long" in fault.what


@pytest.mark.parametrize("multiple", [True, 0, "7", None, [7]])
def test_fault_of_what_is_no_multiple_names_it(multiple: object) -> None:
    fault = _fault(_number(multipleOf=multiple))
    assert fault is not None
    assert (fault.pointer, fault.keyword) == ("#/properties/n", "multipleOf")


def test_fault_of_a_heavy_schema_is_found_in_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    many: dict[str, Any] = {f"p{i}": {"allOf": [{"type": "string", "format": "date"}]} for i in range(20)}
    monkeypatch.setattr(schema_trial, "SECONDS", 30)  # however busy the machine is
    monkeypatch.setattr(schema_trial.json_schema, "locate", None)  # of this process
    assert _fault({"properties": many}) is None
    fault = _fault({"properties": {**many, "x": {"type": "string", "format": "zzz"}}})
    assert fault is not None
    assert (fault.pointer, fault.keyword) == ("#/properties/x", "format")


_DATE = {"type": "string", "format": "date"}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"enum": ["a"] * 100},
        {"properties": {f"p{i}": _DATE for i in range(50)}},
        _number(multipleOf=0.01),
        _number(multipleOf=1_000_000),
        {"properties": {"a": {"anyOf": [_DATE] * 9, "title": "A"}}, "$defs": {"d": {"$ref": "#"}}},
    ],
)
def test_fault_of_a_light_schema_starts_no_process(
    schema: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("subprocess.run", None)
    assert _fault(schema) is None
