from __future__ import annotations

import pytest
from pydantic_core import PydanticCustomError

from llmrun.api.llamacpp.prompts import prompts_of


@pytest.mark.parametrize(
    ("value", "prompts"),
    [
        ("a", ("a",)),
        ("", ("",)),
        ([1, 2], ((1, 2),)),
        ([1, "a", 2], ((1, "a", 2),)),
        (["a", 1], (("a", 1),)),
        (["a", "b"], ("a", "b")),
        (["a"], ("a",)),
        ([[1, "a"], [2], "b"], ((1, "a"), (2,), "b")),
        ({"prompt_string": "a"}, ("a",)),
        ([[1], {"prompt_string": "a", "multimodal_data": []}], ((1,), "a")),
    ],
)
def test_prompts_every_shape_that_llama_server_takes(value: object, prompts: object) -> None:
    assert prompts_of(value) == prompts


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (None, ""),
        ([], ""),
        ([None], "0"),
        ([[]], "0"),
        ([1, -1], "1"),
        ([1, True], "1"),
        ([["a", 2.5]], "0.1"),
        ([1, [2]], "1"),
        ({"prompt_string": 1}, "prompt_string"),
        ({"text": "a"}, "text"),
        (["a", {"prompt_string": "<x>", "multimodal_data": ["AA=="]}], "1.multimodal_data"),
    ],
)
def test_prompts_other_shapes_are_refused_where_they_are_wrong(value: object, field: str) -> None:
    with pytest.raises(PydanticCustomError) as caught:
        prompts_of(value)
    assert caught.value.context is not None
    assert caught.value.context["field"] == field
