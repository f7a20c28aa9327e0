from __future__ import annotations

import json
import time
from typing import Any

import pytest

from llmrun.chat.json_schema import SchemaFault, parse
from llmrun.chat.schema_trial import SECONDS, fault_of


def _fault(schema: dict[str, Any]) -> SchemaFault | None:
    text = json.dumps(schema)
    return fault_of(text, parse(text))


def _intersection(count: int) -> dict[str, Any]:
    return {"allOf": [{"type": "string", "pattern": f"(.*{i}.*){{10}}"} for i in range(count)]}


def test_fault_of_exploding_patterns_ends_in_bounded_time() -> None:
    began = time.monotonic()
    fault = _fault(_intersection(40))
    assert time.monotonic() - began < SECONDS + 1
    assert fault is not None
    assert "too long" in fault.what


def test_fault_of_a_heavy_schema_is_the_same_as_of_a_light_one() -> None:
    many = {f"p{i}": {"type": "string", "format": "date"} for i in range(20)}
    assert _fault({"properties": many}) is None
    fault = _fault({"properties": {**many, "x": {"type": "string", "format": "zzz"}}})
    assert fault is not None
    assert (fault.pointer, fault.keyword) == ("#/properties/x", "format")


@pytest.mark.parametrize("schema", [{"type": "object"}, {"enum": ["a"] * 100}])
def test_fault_of_a_light_schema_starts_no_process(
    schema: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("subprocess.run", None)
    assert _fault(schema) is None
