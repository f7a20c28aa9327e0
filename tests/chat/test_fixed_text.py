from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmrun.chat.fixed_text import LIMIT, of_pattern, of_schema

_atoms = st.sampled_from(["a", "bc", r"\d", "[xy]", "[^]a-z]", r"\("])
_patterns = st.recursive(
    _atoms,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.tuples(inner, st.integers(0, 20)).map(lambda pair: f"({pair[0]}){{{pair[1]}}}"),
        st.tuples(inner, st.integers(0, 20)).map(lambda pair: f"(?:{pair[0]}){{{pair[1]},}}"),
        st.lists(inner, min_size=2, max_size=3).map(lambda many: f"({'|'.join(many)})"),
    ),
    max_leaves=6,
)


@given(_patterns)
def test_of_pattern_is_no_less_than_any_match_must_hold(pattern: str) -> None:
    least, _ = re._parser.parse(pattern).getwidth()  # type: ignore[attr-defined]
    assert of_pattern(pattern) >= least


@pytest.mark.parametrize(
    ("pattern", "most"),
    [
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", 36),
        (r"(\d{4}-){3}\d{4}", 20),
        (r"\{\d{2}\}", 6),
        ("[{9999999}]", 1),
        (r"a{,5}b*c+", 20),
        (")))", 3),
        ("", 0),
    ],
)
def test_of_pattern_of_usual_ones_is_small(pattern: str, most: int) -> None:
    assert of_pattern(pattern) <= most


@pytest.mark.parametrize("pattern", ["(a{1000}){1000}", "a{1000000,}", "[a]{99999}"])
def test_of_pattern_of_hostile_ones_is_past_the_limit(pattern: str) -> None:
    assert of_pattern(pattern) > LIMIT


def test_of_schema_that_requires_itself_is_infinite() -> None:
    assert of_schema({"properties": {"a": {"$ref": "#"}}, "required": ["a"]}) == math.inf
    defs = {"a": {"prefixItems": [{"$ref": "#/$defs/b"}]}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}
    assert of_schema({"$ref": "#/$defs/a", "$defs": defs}) == math.inf


@pytest.mark.parametrize(
    "inside",
    [
        {"properties": {"next": {"$ref": "#"}}},
        {"items": {"$ref": "#"}},
        {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
        {"additionalProperties": {"$ref": "#"}},
    ],
)
def test_of_schema_that_may_hold_itself_is_small(inside: dict[str, object]) -> None:
    assert of_schema(inside) < 100


def test_of_schema_counts_what_must_be_repeated() -> None:
    assert of_schema({"items": {"const": "x" * 100}, "minItems": 1000}) > 100_000
    many = {f"d{i}": {"prefixItems": [{"$ref": f"#/$defs/d{i + 1}"}] * 10} for i in range(12)}
    assert of_schema({"$ref": "#/$defs/d0", "$defs": {**many, "d12": {"const": "x"}}}) > 10**12


def test_of_schema_usual_object_is_about_its_own_length() -> None:
    properties = {f"name{i}": {"enum": ["one", "two"]} for i in range(50)}
    assert of_schema({"type": "object", "properties": properties}) < 2000


def test_of_schema_chain_of_references_longer_than_the_stack_is_infinite() -> None:
    chain = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(5000)}
    assert of_schema({"$ref": "#/$defs/d0", "$defs": chain}) == math.inf
