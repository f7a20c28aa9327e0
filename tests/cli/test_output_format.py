from __future__ import annotations

from pathlib import Path

import pytest

from llmrun.cli.output_format import output_format
from llmrun.errors import LlmrunError


def test_output_format_nothing_asked_is_free_text() -> None:
    assert output_format(None, None) is None


def test_output_format_json_is_any_object() -> None:
    wanted = output_format("json", None)
    assert wanted is not None
    assert wanted.kind == "json_object"


def test_output_format_schema_inline_and_from_a_file_are_the_same(tmp_path: Path) -> None:
    text = '{"type": "integer"}'
    (tmp_path / "schema.json").write_text(text)
    inline, named = output_format("json", text), output_format(None, str(tmp_path / "schema.json"))
    assert inline == named
    assert inline is not None
    assert (inline.kind, inline.text) == ("json_schema", text)


@pytest.mark.parametrize(
    ("name", "schema", "what"),
    [
        ("yaml", None, "--format is 'yaml'"),
        (None, "{", "--schema is not JSON"),
        (None, '{"a":' * 100_000, "--schema is not JSON"),
        (None, "/nowhere/schema.json", "cannot read /nowhere/schema.json"),
    ],
)
def test_output_format_what_is_none_is_wrong_usage(name: str | None, schema: str | None, what: str) -> None:
    with pytest.raises(LlmrunError, match=what) as caught:
        output_format(name, schema)
    assert caught.value.kind.exit == 2


def test_output_format_file_that_holds_no_object_is_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text("[1]")
    with pytest.raises(LlmrunError, match="not a JSON Schema"):
        output_format(None, str(tmp_path / "list.json"))
