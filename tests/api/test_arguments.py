from __future__ import annotations

import json
from typing import Any

import pytest

from llmrun.api.arguments import Arguments, partial_object, whole_object
from llmrun.api.schema import Body
from llmrun.errors import LlmrunError


class Call(Body):
    arguments: Arguments


@pytest.mark.parametrize("value", [{}, {"at": "Zürich", "n": [1, 2.5, None, {"x": 2**70}]}, {'"': "\\"}])
def test_arguments_become_text_and_an_object_again(value: Any) -> None:
    text = Call.parse({"arguments": value}).arguments
    assert json.loads(text) == value
    assert partial_object(text) == whole_object(text) == value


@pytest.mark.parametrize("value", ["{}", [], 1])
def test_arguments_that_are_no_object_are_named(value: Any) -> None:
    with pytest.raises(LlmrunError) as caught:
        Call.parse({"arguments": value})
    assert caught.value.field == "arguments"


def test_arguments_nested_too_deeply_are_an_error_not_a_crash() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"a": deep}
    with pytest.raises(LlmrunError, match="too deeply"):
        Call.parse({"arguments": deep})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        ("{", {}),
        ('{"at": "s', {}),
        ('{"at": "sea", "n": [1', {"at": "sea", "n": [1]}),
        ('{"a": "\\ud83d', {}),
    ],
)
def test_partial_object_of_cut_text_is_what_is_complete(text: str, found: Any) -> None:
    assert partial_object(text) == found
    assert whole_object(text) is None
