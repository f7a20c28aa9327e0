from __future__ import annotations

import json
from typing import Any

import pytest

from llmrun.chat.writable import check_format, check_tools
from llmrun.errors import LlmrunError
from llmrun.types import OutputFormat, Tool
from tests.chat.vocabs import CharVocab


class Lacking(CharVocab):
    """It has nothing for the llama."""

    def tokenize(self, text: str, special: bool, edges: bool = False, most: int | None = None) -> list[int]:
        return super().tokenize(text.replace("🦙", ""), special, edges, most)


VOCAB = Lacking(control={})


def refused(wanted: OutputFormat) -> str | None:
    try:
        check_format(wanted, VOCAB)
    except LlmrunError as error:
        return error.field
    return None


@pytest.mark.parametrize(
    "schema",
    [
        {"const": {"k": ["a 🦙"]}},
        {"items": {"anyOf": [{"enum": [1, "🦙"]}]}},
        {"properties": {"🦙": {}}},
        {"properties": {"a": {"required": ["🦙"]}}},
        {"$defs": {"d": {"const": "🦙"}}, "$ref": "#/$defs/d"},
    ],
)
def test_format_with_a_text_that_cannot_be_written_is_refused_by_field(schema: dict[str, Any]) -> None:
    assert refused(OutputFormat(kind="json_schema", text=json.dumps(schema), field="format")) == "format"


@pytest.mark.parametrize(
    "schema",
    [
        {"description": "a 🦙", "default": "🦙", "examples": ["🦙"]},
        {"properties": {"é漢": {"enum": ["ü", 1, None]}}},
        {"required": True},
    ],
)
def test_format_whose_notes_alone_cannot_be_written_is_taken(schema: dict[str, Any]) -> None:
    assert refused(OutputFormat(kind="json_schema", text=json.dumps(schema), field="format")) is None


def test_choices_are_checked_too() -> None:
    assert refused(OutputFormat(kind="choice", choices=("a", "🦙"), field="choices")) == "choices"
    assert refused(OutputFormat(kind="choice", choices=("a", "é"))) is None


def test_tools_are_named_by_their_place() -> None:
    tools = [Tool(name="f"), Tool(name="g", parameters={"properties": {"🦙": {}}})]
    with pytest.raises(LlmrunError) as caught:
        check_tools(tools, VOCAB)
    assert caught.value.field == "tools.1"
    assert "U+1F999" in caught.value.message
