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


@functools.cache
def fragments(family: str) -> st.SearchStrategy[str]:
    """The markers of a family, whole and in part, among other things that stand in calls."""
    markers = [text for text in set(texts(syntax(family))) if text]
    parts = [text[:cut] for text in markers for cut in (1, len(text) // 2, len(text) - 1)]
    words = [
        "f",
        "s",
        "{",
        "}",
        '{"s": "a"}',
        '"',
        "'",
        "(",
        ")",
        "=",
        ",",
        ":",
        " ",
        "\n",
        "text",
        "🦙",
        "<",
        "\\",
    ]
    return st.lists(st.sampled_from(sorted({*markers, *parts, *words})), max_size=14).map("".join)


@pytest.mark.parametrize("family", SOURCES)
@settings(max_examples=60)
@given(data=st.data(), cut=st.booleans())
def test_parser_any_text_is_the_same_message_bit_by_bit(family: str, data: st.DataObject, cut: bool) -> None:
    found = parsed(data.draw(fragments(family)), syntax(family), TOOLS, cut=cut)
    for call in found.calls:
        assert call.complete is not None
        if call.complete:
            assert isinstance(json.loads(call.text), dict)


@settings(max_examples=200)
@given(st.text())
def test_parser_text_without_markers_is_content_whole(text: str) -> None:
    if "<" not in text:
        assert parsed(text, FALLBACK).content == text
