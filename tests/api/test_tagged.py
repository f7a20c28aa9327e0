from __future__ import annotations

from typing import Annotated, Any

import pytest

from llmrun.api.schema import Body
from llmrun.api.tagged import tagged
from llmrun.errors import INVALID_REQUEST, UNSUPPORTED_FIELD, Kind, LlmrunError


class Item(Body):
    type: str


class Holder(Body):
    item: Annotated[Item, tagged({"text", "call"}, {"image": "image input"})]


@pytest.mark.parametrize(
    ("item", "kind", "message"),
    [
        ({"type": "image"}, UNSUPPORTED_FIELD, "item.type asks for image input"),
        ({"type": "song"}, INVALID_REQUEST, "item.type is 'song'; it should be one of: call, text"),
        ({"type": []}, INVALID_REQUEST, "item.type is []"),
        ({}, INVALID_REQUEST, "item.type is missing"),
        ("text", INVALID_REQUEST, "item should be an object"),
    ],
)
def test_tagged_what_is_none_of_the_known_is_named(item: Any, kind: Kind, message: str) -> None:
    with pytest.raises(LlmrunError, match=message.replace("[", r"\[")) as caught:
        Holder.parse({"item": item})
    assert caught.value.kind is kind


def test_tagged_known_ones_pass() -> None:
    assert Holder.parse({"item": {"type": "call"}}).item.type == "call"
