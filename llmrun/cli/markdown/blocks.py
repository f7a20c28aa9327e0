"""Code and tables of Markdown as lines for a terminal."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from llmrun.cli.markdown.inline import Inline
from llmrun.cli.markdown.wrap import painted

if TYPE_CHECKING:
    from rich.console import Console, JustifyMethod

CONTEXT = 400  # lines of code that a line is understood by; a longer file would cost more and more a line
_DELIMITER = re.compile(r"\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*")
_CELL = re.compile(r"(?<!\\)\|")


class Code:
    """A code block; its lines are coloured one by one, each as what it is among those above it."""

    def __init__(self, language: str) -> None:
        from rich.syntax import Syntax

        self._syntax = Syntax("", language or "text", theme="ansi_dark", background_color="default")
        self._lines: list[str] = []

    def line(self, text: str) -> str:
        """The next line, coloured."""
        self._lines = [*self._lines[-CONTEXT:], text]
        coloured = self._syntax.highlight("\n".join(self._lines)).split("\n", allow_blank=True)
        console, out = _console(len(text) + 1)
        console.print(coloured[len(self._lines) - 1], soft_wrap=True, end="")
        return out.getvalue()


def is_table(lines: Sequence[str]) -> bool:
    """Whether the lines, each of which begins with a bar, have the row of dashes that makes a table."""
    return len(lines) > 1 and _DELIMITER.fullmatch(lines[1].strip()) is not None


def table(lines: Sequence[str], width: int) -> str:
    """The lines of a table, drawn; cells are wrapped where it would be wider than `width`."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    def cells(line: str) -> list[Text]:
        row = line.strip().removeprefix("|")
        row = row[:-1] if row.endswith("|") and not row.endswith("\\|") else row
        return [Text.from_ansi(_inline(cell.strip())) for cell in _CELL.split(row)]

    head, dashes, *rows = [cells(line) for line in lines]
    drawn = Table(box=SIMPLE_HEAD, pad_edge=False)
    for number, title in enumerate(head):
        dash = dashes[number].plain if number < len(dashes) else ""
        right = dash.endswith(":")
        justify: JustifyMethod = "center" if right and dash.startswith(":") else "right" if right else "left"
        # Folded: of a word that is wider than its column nothing is lost.
        drawn.add_column(title, justify=justify, overflow="fold")
    for row in rows:
        drawn.add_row(*row[: len(head)])
    console, out = _console(width)
    console.print(drawn)
    return "\n".join(line.rstrip() for line in out.getvalue().split("\n")).strip("\n")


def _console(width: int) -> tuple[Console, io.StringIO]:
    """What draws for a terminal of that width, and where to."""
    from rich.console import Console

    out = io.StringIO()
    drawing = Console(
        file=out, width=width, force_terminal=True, color_system="standard", highlight=False, markup=False
    )
    return drawing, out


def _inline(text: str) -> str:
    line = Inline()
    return "".join(painted(run.text, run.style) for run in [*line.feed(text), *line.close()])
