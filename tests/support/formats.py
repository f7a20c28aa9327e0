"""Output formats for tests: schemas that a random model keeps short, and constraints that hide things."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from llmrun.engine import Constraint
from llmrun.types import OutputFormat

EMOJI = ["🦙🦙🦙", "👩‍🚀", "𝔘𝔫𝔦"]


def schema_format(schema: dict[str, Any]) -> OutputFormat:
    return OutputFormat(kind="json_schema", text=json.dumps(schema))


class Unforced(Constraint):
    """The same grammar, one token at a time: where the grammar forces some, only the first is allowed."""

    def __init__(self, inner: Constraint) -> None:
        self._inner = inner

    def forced(self) -> list[int]:
        return []

    def allowed(self) -> npt.NDArray[np.intp]:
        forced = self._inner.forced()
        return np.array(forced[:1]) if forced else self._inner.allowed()

    def accept(self, token: int) -> None:
        self._inner.accept(token)

    @property
    def ended(self) -> bool:
        return self._inner.ended


_names = st.text('abkxyz_-/~ é🦙"\\', min_size=1, max_size=6)
_integers = st.integers(-(10**15), 10**15)
_floats = (
    st.floats(-1e15, 1e15).map(lambda number: float(f"{number:.6g}")).filter(lambda n: not 0 < abs(n) < 1e-6)
)


def _multiples(parts: tuple[int, int, bool]) -> dict[str, Any]:
    low, step, open_ends = parts
    names = ("exclusiveMinimum", "exclusiveMaximum") if open_ends else ("minimum", "maximum")
    return {"type": "integer", **dict(zip(names, (low, low + 4 * step), strict=True)), "multipleOf": step}


_leaves = st.one_of(
    st.just({"type": "boolean"}),
    st.just({"type": "null"}),
    st.tuples(st.integers(-50, 50), st.integers(0, 99)).map(
        lambda pair: {"type": "integer", "minimum": pair[0], "maximum": pair[0] + pair[1]}
    ),
    st.tuples(st.integers(0, 3), st.integers(0, 4)).map(
        lambda pair: {"type": "string", "minLength": pair[0], "maxLength": pair[0] + pair[1]}
    ),
    st.tuples(st.integers(-9, 9), st.integers(2, 5), st.booleans()).map(_multiples),
    st.tuples(st.integers(-3, 3), st.integers(1, 3)).map(
        lambda pair: {"allOf": [{"type": "integer", "minimum": pair[0]}, {"maximum": pair[0] + pair[1]}]}
    ),
    st.sampled_from(["^\\d{2,4}$", "^(?:ab|c)+x$", "[a-f]{3}$"]).map(
        lambda pattern: {"type": "string", "pattern": pattern, "maxLength": 8}
    ),
    st.sampled_from(["date", "uuid", "ipv4"]).map(lambda name: {"type": "string", "format": name}),
    st.lists(
        st.one_of(st.none(), st.booleans(), _integers, _floats, st.text(max_size=6)), min_size=1, max_size=4
    ).map(lambda values: {"enum": values}),
    st.text(max_size=8).map(lambda value: {"const": {"k": [value]}}),
)


def _objects(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(_names, inner, max_size=3).flatmap(
        lambda properties: st.lists(st.sampled_from(sorted(properties) or ["a"]), unique=True).map(
            lambda required: {
                "type": "object",
                "properties": properties,
                "required": [name for name in required if name in properties],
                "additionalProperties": False,
            }
        )
    )


def _lists(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.tuples(inner, st.integers(0, 2), st.integers(0, 2)).map(
        lambda parts: {
            "type": "array",
            "items": parts[0],
            "minItems": parts[1],
            "maxItems": parts[1] + parts[2],
        }
    )


def _exclusive(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    ways = st.tuples(_objects(inner), _lists(inner), st.just({"type": "null"}))
    return ways.map(lambda many: {"oneOf": list(many)})


def _tuples(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.lists(inner, min_size=1, max_size=3).map(
        lambda many: {"type": "array", "prefixItems": many, "items": False, "minItems": len(many)}
    )


_written_out = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        _objects(inner),
        _lists(inner),
        _tuples(inner),
        _exclusive(inner),
        st.lists(inner, min_size=1, max_size=3).map(lambda many: {"anyOf": many}),
    ),
    max_leaves=5,
)
_by_reference = _written_out.map(
    lambda inner: {
        "$defs": {"it": inner},
        "type": "array",
        "items": {"$ref": "#/$defs/it"},
        "minItems": 1,
        "maxItems": 2,
    }
)
schemas = st.one_of(_written_out, _by_reference)
"""JSON Schemas whose values all are short, so that even a random model comes to their end."""
