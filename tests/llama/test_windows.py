from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmrun.llama.windows import WIDTH, windows


@given(st.text("ab <\n", max_size=80).flatmap(lambda unit: st.just(unit * 3000)))
def test_windows_together_are_the_text_and_none_is_too_wide(text: str) -> None:
    pieces = list(windows(text))
    assert "".join(pieces) == text
    assert all(len(piece) <= WIDTH for piece in pieces)


def test_windows_short_text_is_one() -> None:
    assert list(windows("")) == [""]
    assert list(windows("a" * WIDTH)) == ["a" * WIDTH]


@pytest.mark.parametrize(
    ("unit", "head"), [("some words, ", " "), ("def f(x):\n\treturn x\n", "d"), ("line\n\n\n", "l")]
)
def test_windows_part_where_words_or_lines_do(unit: str, head: str) -> None:
    _, *others = windows(unit * 5000)
    assert len(others) >= 2
    assert all(piece.startswith(head) for piece in others)


def test_windows_run_without_a_border_is_cut_in_front_of_what_may_be_a_control_token() -> None:
    text = "x" * (WIDTH - 5) + "<|im_end|>" + "x" * 100
    assert next(windows(text)) == "x" * (WIDTH - 5)
    assert [len(piece) for piece in windows("x" * (WIDTH + 1))] == [WIDTH, 1]
