"""Whatever a model writes, the parser takes it, bit by bit as at once, and loses no content."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmrun.chat.syntax import FALLBACK, Syntax, derive
from llmrun.chat.syntax.atoms import special_tags
from llmrun.chat.syntax.markers import Markers
from llmrun.chat.template import ChatTemplate
from llmrun.types import Tool
from tests.chat.syntax.families import FAMILIES, HARMONY
from tests.chat.syntax.parsing import parsed

SOURCES = FAMILIES | {"harmony": HARMONY}
TOOLS = (Tool(name="f", parameters={"type": "object", "properties": {"s": {"type": "string"}}}),)


@functools.cache
def syntax(family: str) -> Syntax:
    return derive(ChatTemplate(SOURCES[family]))


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from texts(item)
    elif is_dataclass(value):
        for field in fields(value):
            yield from texts(getattr(value, field.name))


WORDS = (*"fs{}\"'()=,: \n🦙\\", '{"s": "a"}', "text")


@functools.cache
def fragments(family: str, *, whole: bool = False) -> st.SearchStrategy[str]:
    """The markers of a family, and unless `whole` parts of them, among other things that stand in calls."""
    markers = [text for text in set(texts(syntax(family))) if text]
    parts = [text[:cut] for text in markers for cut in (1, len(text) // 2, len(text) - 1)]
    found = {*markers, *WORDS} if whole else {*markers, *WORDS, *parts, "<"}
    return st.lists(st.sampled_from(sorted(found)), max_size=14).map("".join)


@pytest.mark.parametrize("family", SOURCES)
@settings(max_examples=60)
@given(data=st.data(), cut=st.booleans())
def test_parser_any_text_is_the_same_message_bit_by_bit(family: str, data: st.DataObject, cut: bool) -> None:
    found = parsed(data.draw(fragments(family)), syntax(family), TOOLS, cut=cut)
    for call in found.calls:
        assert call.complete is not None
        if call.complete:
            assert isinstance(json.loads(call.text), dict)


@pytest.mark.parametrize("family", SOURCES)
@settings(max_examples=60)
@given(data=st.data(), cut=st.booleans())
def test_parser_tag_of_its_own_is_never_content(family: str, data: st.DataObject, cut: bool) -> None:
    found = parsed(data.draw(fragments(family, whole=True)), syntax(family), TOOLS, cut=cut)
    assert not [tag for tag in special_tags(found.content) if tag in Markers(syntax(family)).strays]


@settings(max_examples=200)
@given(st.text())
def test_parser_text_without_markers_is_content_whole(text: str) -> None:
    if "<" not in text:
        assert parsed(text, FALLBACK).content == text
