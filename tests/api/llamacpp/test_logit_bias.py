from __future__ import annotations

import math

import pytest
from pydantic_core import PydanticCustomError

from llmrun.api.llamacpp.logit_bias import biases_of
from llmrun.api.llamacpp.texts import BiasOfTokens
from llmrun.types import Tokenized


@pytest.mark.parametrize(
    ("value", "pairs"),
    [
        ([[5, 1.5], [6, False]], ((5, 1.5), (6, -math.inf))),
        ([["5", -1]], (("5", -1.0),)),
        ({"5": 2, "a b": False}, ((5, 2.0), ("a b", -math.inf))),
        ([], ()),
    ],
)
def test_biases_in_both_forms(value: object, pairs: object) -> None:
    assert biases_of(value) == pairs


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ("5", ""),
        ([5], "0"),
        ([[5, 1], [5, True]], "1.1"),
        ([[-1, 1]], "0.0"),
        ([["", 1]], "0.0"),
        ([[5, "1"]], "0.1"),
        ({"5": None}, "5"),
    ],
)
def test_biases_of_other_shapes_are_refused_where_they_are_wrong(value: object, field: str) -> None:
    with pytest.raises(PydanticCustomError) as caught:
        biases_of(value)
    assert caught.value.context is not None
    assert caught.value.context["field"] == field


def test_bias_of_text_is_that_of_each_of_its_tokens_and_adds_up() -> None:
    bias = BiasOfTokens((("ab", 1.0), (7, 2.0), ("c", -math.inf)))
    assert [asked.text for asked in bias.requests("r", "m")] == ["ab", "c"]
    bias.add(1, Tokenized((9,)))
    bias.add(0, Tokenized((7, 8)))
    assert bias.body() == {7: 3.0, 8: 1.0, 9: -math.inf}
