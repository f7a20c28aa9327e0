"""Lines and blocks of Markdown as they are written: what kind of line this is, and how it is shown.

The marks are those of CommonMark and GitHub's tables. Two things differ, as chats write them: a line break
stays one, and an indented line is no code. Only bars that begin a line make a table.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from llmrun.cli.markdown.blocks import Code, is_table, table
from llmrun.cli.markdown.inline import PLAIN, Inline, Run
from llmrun.cli.markdown.wrap import Wrapper, painted

_DIM = frozenset({"dim"})
_HEADING = frozenset({"heading"})
# The beginnings of lines that may still become something else.
_OPEN = re.compile(r"#{1,6}|[-+]+|\*+|_+|\d{1,9}[.)]?|`{1,}[^`]*|~~~*[^~]*|\|.*|>")
_FENCE = re.compile(r"(`{3,})([^`]*)|(~{3,})(.*)")
_RULE = re.compile(r"([-*_])(\s*\1){2,}\s*")
_HEADING_MARK = re.compile(r"#{1,6}\s+")
_ITEM = re.compile(r"([-*+]|\d{1,9}[.)])(\s+)")


class MarkdownStream:
    """`feed` it text without control characters, then `close`. Not thread-safe.

    write  takes what is to be shown, in order        width  columns of the terminal
    """

    def __init__(self, write: Callable[[str], None], width: int) -> None:
        self._write = write
        self._width = width
        self._wrapper = Wrapper(write, width)
        self._inline = Inline()
        self._style = PLAIN
        self._line = ""  # of a line whose kind is not known yet, or that is shown as a whole
        self._within = False  # whether its kind is known, so that its text goes out as it comes
        self._fence = ""
        self._code: Code | None = None
        self._table: list[str] = []

    def feed(self, text: str) -> None:
        first, *others = text.split("\n")
        self._text(first)
        for line in others:
            self._end_line()
            self._text(line)

    def close(self) -> None:
        """The end of the text; ends its last line."""
        if self._line or self._within:
            self._end_line()
        self._end_table()
        self._code = None

    def _text(self, text: str) -> None:
        if not text:
            return
        if self._within:
            self._put(self._inline.feed(text))
            return
        self._line += text
        if self._code is None and not self._undecided():
            self._begin()

    def _undecided(self) -> bool:
        rest = self._line.lstrip(" >")
        return not rest or _OPEN.fullmatch(rest) is not None

    def _end_line(self) -> None:
        if self._code is not None:
            self._code_line(self._code)
            return
        if not self._within and self._whole_line():
            self._line = ""
            return
        if not self._within:
            self._begin()
        self._put(self._inline.close())
        self._wrapper.end_line()
        self._style, self._within = PLAIN, False

    def _whole_line(self) -> bool:
        """Whether the line is of a kind that is shown when it is whole; it has been, then."""
        line = self._line.strip()
        if line.startswith("|"):
            self._table.append(self._line)
            return True
        self._end_table()
        if fence := _FENCE.fullmatch(line):
            self._fence = fence[1] or fence[3]
            words = (fence[2] or fence[4] or "").split()
            self._code = Code(words[0] if words else "")
            self._write(painted(self._line, _DIM) + "\n")
        elif _RULE.fullmatch(line):
            self._write(painted("─" * self._width, _DIM) + "\n")
        elif not line:
            self._write("\n")
        else:
            return False
        return True

    def _code_line(self, code: Code) -> None:
        line, self._line = self._line, ""
        end = line.strip()
        if end.startswith(self._fence) and not end.strip(self._fence[0]):
            self._code = None
            self._write(painted(line, _DIM) + "\n")
        else:
            self._write(code.line(line) + "\n")

    def _begin(self) -> None:
        """The line's kind is known: write its mark, and go on with its text."""
        self._end_table()
        rest, hang = self._line, ""
        self._line, self._within = "", True
        while quote := re.match(r"( {0,3})> ?", rest):
            self._wrapper.begin("│ ", hang := f"{hang}│ ", _DIM)
            rest = rest[quote.end() :]
        indent = rest[: len(rest) - len(rest.lstrip())].expandtabs(4)
        rest = rest.lstrip()
        if heading := _HEADING_MARK.match(rest):
            self._style = _HEADING
            self._wrapper.begin(indent, hang + indent)
            rest = rest[heading.end() :]
        elif item := _ITEM.match(rest):
            mark = item[1] if item[1][0].isdigit() else "•"
            self._wrapper.begin(f"{indent}{mark} ", hang + indent + " " * (len(mark) + 1))
            rest = rest[item.end() :]
        else:
            self._wrapper.begin(indent, hang + indent)
        self._put(self._inline.feed(rest))

    def _put(self, runs: list[Run]) -> None:
        for run in runs:
            self._wrapper.put(Run(run.text, run.style | self._style))

    def _end_table(self) -> None:
        lines, self._table = self._table, []
        if is_table(lines):
            self._write(table(lines, self._width) + "\n")
            return
        for line in lines:  # bars that are none of a table
            self._wrapper.begin("", "")
            self._put([*self._inline.feed(line), *self._inline.close()])
            self._wrapper.end_line()
