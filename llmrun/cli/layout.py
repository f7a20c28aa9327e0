"""Tables and lists of names and values as lines, in as many columns as there are. Pure.

Where a width is given it is that of a terminal, and what would not fit is shortened or folded: left to itself
a terminal breaks lines in the middle of words. Without a width nothing is.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Record = Mapping[str, Any]
Columns = Mapping[str, Callable[[Any], str]]
Pairs = Sequence[tuple[str, str]]
_GAP = "  "
_LEAST = 12  # columns that a shortened text has at least


def table(records: Sequence[Record], columns: Columns, width: int | None = None) -> list[str]:
    """Headings, then the records, columns two spaces apart. In `width` the longest texts are shortened, but
    for the first column, which are names, and the last, which goes on below itself, or runs over where it is
    one word: a path. If that is not enough each record is a block of lines."""
    rows = [list(columns), *([cell(record) for cell in columns.values()] for record in records)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if width is not None:
        narrowed = _narrowed(widths, width)
        if narrowed is None:
            return _blocks(rows, width) if records else folded(_GAP.join(columns), width)
        widths = narrowed
    return [line for row in rows for line in _row(row, widths, width)]


def fields(pairs: Pairs, width: int | None = None) -> list[str]:
    """Names and values, aligned; in `width` a long value goes on below its beginning."""
    longest = max((len(name) for name, _ in pairs), default=0)
    if width is None:
        return [f"{name.ljust(longest)}{_GAP}{value}".rstrip() for name, value in pairs]
    column = min(longest, width * 2 // 5)
    return [line for name, value in pairs for line in _field(name, value, column, width)]


def folded(text: str, width: int | None, hang: str = "") -> list[str]:
    """Lines of text, in `width` broken between words: what goes on begins as far in as its line, and with
    `hang`. A word that is longer stays whole, so that it can be copied."""
    return [part for line in text.split("\n") for part in _folded(line, width, hang)]


def _folded(line: str, width: int | None, hang: str) -> list[str]:
    if width is None or len(line) <= width:
        return [line]
    indent = line[: len(line) - len(line.lstrip())] + hang
    words = textwrap.TextWrapper(
        max(width, 1), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return words.wrap(line) or [""]


def _narrowed(widths: list[int], width: int) -> list[int] | None:
    """The columns' widths once the widest have given way; None where that is not enough."""
    widths = [*widths]
    gaps, inner = len(_GAP) * (len(widths) - 1), range(1, len(widths) - 1)
    while sum(widths) + gaps > width:
        at = max(inner, key=widths.__getitem__, default=0)
        if at == 0 or widths[at] <= _LEAST:
            fits = sum(widths[:-1]) + gaps + min(widths[-1], _LEAST) <= width
            return widths if fits else None
        widths[at] -= 1
    return widths


def _row(row: list[str], widths: list[int], width: int | None) -> list[str]:
    start = "".join(f"{_cell(text, column)}{_GAP}" for text, column in zip(row[:-1], widths, strict=False))
    first, *rest = folded(row[-1], width and max(width - len(start), 1))
    return [f"{start}{first}".rstrip(), *(" " * len(start) + line for line in rest)]


def _cell(text: str, width: int) -> str:
    return text.ljust(width) if len(text) <= width else f"{text[: width - 1]}…"


def _blocks(rows: list[list[str]], width: int) -> list[str]:
    names, *records = rows
    lines: list[str] = []
    for record in records:
        lines += ["", *fields([*zip(names, record, strict=True)], width)]
    return lines[1:]


def _field(name: str, value: str, column: int, width: int) -> list[str]:
    room = max(width - column - len(_GAP), 1)
    lines = folded(value, room)
    hang = " " * (column + len(_GAP))
    if len(name) > column:
        return [name.rstrip(), *(f"{hang}{line}".rstrip() for line in lines)]
    first, *rest = lines
    return [f"{name.ljust(column)}{_GAP}{first}".rstrip(), *(f"{hang}{line}".rstrip() for line in rest)]
