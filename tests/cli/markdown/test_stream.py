from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmrun.cli.markdown import MarkdownStream, Words

WIDTH = 40
CODES = re.compile(r"\x1b\[[0-9;]*m")
EVERYTHING = '''# Title with `code`

A **bold *nested* word**, snake_case, and a [link](http://x.y/z), long enough to be wrapped somewhere.

- one **two
  - nested item that is long, so that it wraps and hangs
10. tenth

> quoted **text** that is also so long that it wraps
```python
def f(x):
    """doc
    string"""
    return "`x`"
```
| a | b |
|---|--:|
| **x** | 1 |

***
| no table
日本語のテキストはとても長いのでここで折り返す必要がありますよね
last **open'''


def shown(*parts: str, width: int = WIDTH) -> str:
    written: list[str] = []
    stream = MarkdownStream(written.append, width)
    for part in parts:
        stream.feed(part)
    stream.close()
    return "".join(written)


def plain(*parts: str) -> str:
    return CODES.sub("", shown(*parts))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("# Title", ["Title"]),
        ("#hashtag", ["#hashtag"]),
        ("- a\n* b\n+ c", ["• a", "• b", "• c"]),
        ("  - inner", ["  • inner"]),
        ("1. a\n2) b", ["1. a", "2) b"]),
        ("-5 is cold", ["-5 is cold"]),
        ("**bold** first", ["bold first"]),
        ("---", ["─" * WIDTH]),
        ("> a\n> > b", ["│ a", "│ │ b"]),
        ("a\n\n\nb", ["a", "", "", "b"]),
        ("3.14 is pi", ["3.14 is pi"]),
        ("2024", ["2024"]),
        ("`code` first", ["code first"]),
        ("```\n**raw** # no\n```\nafter", ["```", "**raw** # no", "```", "after"]),
        ("~~~py\n```\n~~~", ["~~~py", "```", "~~~"]),
        ("```\nnever closed", ["```", "never closed"]),
        ("| a | b |\n|---|---|\n| 1 | 2 |", [" a   b", " ─────", " 1   2"]),
        ("| a | b |\nno dashes", ["| a | b |", "no dashes"]),
    ],
)
def test_line_of_each_kind_is_shown(text: str, lines: list[str]) -> None:
    assert [line.rstrip() for line in plain(text).splitlines()] == lines


def test_long_lines_wrap_between_words_and_hang_below_their_mark() -> None:
    lines = plain("- " + "word " * 20).splitlines()
    assert all(len(line) <= WIDTH for line in lines)
    assert all(line.startswith("  word") for line in lines[1:])
    assert " ".join(plain("word " * 20).split()) == " ".join(["word"] * 20)


def test_words_go_out_as_they_end_and_never_back() -> None:
    written: list[str] = []
    stream = MarkdownStream(written.append, WIDTH)
    stream.feed("Once upon a ti")
    assert "".join(written) == "Once upon a"
    stream.feed("me")
    stream.close()
    assert "".join(written) == "Once upon a time\n"


def test_code_line_is_coloured_as_what_it_is_among_those_above() -> None:
    inside = shown('```python\n"""\nreturn 1\n"""\n```').splitlines()[2]
    outside = shown("```python\nreturn 1\n```").splitlines()[1]
    assert inside != outside


def test_nothing_moves_the_cursor() -> None:
    """Colours and styles only: what is shown is never painted over."""
    assert not re.search(r"\x1b(?!\[[0-9;]*m)|\r", shown(EVERYTHING))


@settings(deadline=None)
@given(st.lists(st.integers(0, len(EVERYTHING)), max_size=30))
def test_pieces_of_any_size_show_the_same(cuts: list[int]) -> None:
    ends = sorted(cuts)
    parts = [EVERYTHING[i:j] for i, j in zip([0, *ends], [*ends, len(EVERYTHING)], strict=True)]
    assert shown(*parts) == shown(EVERYTHING)


@settings(deadline=None)
@given(st.text(alphabet="ab1 #-*>`~|.\n_[](", max_size=60))
def test_any_text_is_shown_and_keeps_its_letters(text: str) -> None:
    letters = [c for c in text if c in "ab"]
    said = plain(text)
    if "```" not in text and "~~~" not in text:
        assert [c for c in said if c in "ab"] == letters


def worded(*parts: str, width: int = 12) -> list[str]:
    written: list[str] = []
    words = Words(written.append, width)
    for part in parts:
        words.feed(part)
    words.close()
    return "".join(written).split("\n")


def test_words_are_whole_on_their_lines_however_they_come() -> None:
    text = "one two three  four\n  indented line *as it is*\n"
    lines = ["one two", "three  four", "  indented", "line *as it", "is*", ""]
    assert worded(text) == worded(*text) == lines


def test_words_of_code_stay_on_their_line() -> None:
    text = "a text\n```py\nx = f(one, two, three)\n```\nand more of the text"
    assert worded(*text) == ["a text", "```py", "x = f(one, two, three)", "```", "and more of", "the text"]


def test_table_loses_no_letter_of_a_word_that_is_wider_than_its_column() -> None:
    word = "abcdefghijklmnopqrstuvwxyz"
    lines = plain(f"| {word} {word} | b |\n|---|---|\n| {word} | {word} |\n").split("\n")
    assert "…" not in "".join(lines)
    assert sum(line.count(letter) for line in lines for letter in word) >= 4 * len(word)
    assert max(map(len, lines)) <= WIDTH
