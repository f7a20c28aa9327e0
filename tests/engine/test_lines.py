from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmrun.engine.lines import Lines


def fed(pieces: list[str], min_indent: int = 0, seconds: float | None = None, speed: float = 1.0) -> str:
    """The text of an answer in these pieces, one every `speed` seconds, up to its end."""
    lines = Lines(min_indent, seconds)
    shown = ""
    for number, piece in enumerate(pieces):
        text, over = lines.take(piece, number * speed, last=number == len(pieces) - 1)
        shown += text
        if over:
            return shown + "|"
    return shown


def test_lines_nothing_wanted_nothing_to_watch() -> None:
    assert Lines.of(0, None) is None
    assert Lines.of(0, 0.0) is not None


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("return x", "return x"),
        ("if a:\n    b\n", "if a:\n    b\n"),
        ("if a:\n    b\ndef f():\n    c", "if a:\n    b\n|"),
        ("a\n\n    b", "a\n|"),
        ("a\n\t\t  b\n", "a\n\t\t  b\n"),
        ("a\n  ", "a\n  "),
        ("a\n  b", "a\n|"),
    ],
)
def test_lines_answer_ends_before_a_line_indented_less(text: str, kept: str) -> None:
    assert fed([text], 4) == fed(list(text), 4) == kept


@given(st.text(" \tab\n"), st.integers(1, 6))
def test_lines_pieces_make_no_difference(text: str, min_indent: int) -> None:
    assert fed([text], min_indent) == fed([*text, ""], min_indent)


def test_lines_late_answer_ends_with_its_line() -> None:
    assert fed(["a\n", "b", "c\n", "d"], seconds=1.5) == "a\nbc\n|"
    assert fed(["a\n", "b", "c\n", "d"], seconds=2.5) == "a\nbc\nd"


def test_lines_late_answer_without_another_newline_goes_on() -> None:
    assert fed(["a", "b", "c"], seconds=0.5) == "abc"
