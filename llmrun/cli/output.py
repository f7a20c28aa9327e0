"""The one place that writes to a person: results to stdout, everything else to stderr.

Goes in: results, records, notes, errors. Comes out: text that suits where it goes. On a terminal an
error is red and control characters are made visible; anywhere else the bytes are exactly the text.
It does not know commands, models or HTTP.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, TextIO

from llmrun.cli.layout import Columns, Pairs, Record, fields, folded, table
from llmrun.errors import DISK, LlmrunError

if TYPE_CHECKING:
    from rich.console import Console

Mode = Literal["human", "json"]

# A model or a server must not drive the reader's terminal: control characters, except for line and
# tab, are shown by the symbols Unicode has for them.
_VISIBLE = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\n\t"} | {0x7F: "␡"}
_VISIBLE |= dict.fromkeys(range(128, 160), "�")


def one_line(text: str) -> str:
    """`text` with its line breaks made spaces."""
    return " ".join(part for line in text.splitlines() if (part := line.strip()))


def visible(text: str) -> str:
    """`text` with its control characters as symbols."""
    return text.translate(_VISIBLE)


def columns_of(stream: TextIO) -> int:
    """Columns of the terminal that `stream` is: what COLUMNS says, else what the terminal does."""
    try:
        real = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        real = 0
    return shutil.get_terminal_size().columns if os.environ.get("COLUMNS") else real or 80


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person reads (or types on) `stream`; a closed stream is no terminal."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


class Output:
    """Writes for one command. `mode` says whether results are tables or JSON; `quiet` leaves out what is no
    result and, of tables, all but the names. A missing stream (closed by the shell) swallows what is
    written."""

    def __init__(
        self,
        stdout: TextIO | None,
        stderr: TextIO | None,
        *,
        mode: Mode = "human",
        quiet: bool = False,
        env: Mapping[str, str] = os.environ,
    ) -> None:
        self.mode = mode
        self.quiet = quiet
        self._out = stdout
        self._err = stderr
        self.on_terminal = is_terminal(stdout)
        self.notes_on_terminal = is_terminal(stderr)
        plain = bool(env.get("NO_COLOR")) or env.get("TERM") == "dumb"
        self.colour = self.notes_on_terminal and not plain
        self.styled = self.on_terminal and not plain

    @classmethod
    def standard(cls) -> Output:
        """The process's own streams. Pipes and files get UTF-8 whatever the locale says; a terminal
        keeps its encoding and shows a mark for what it cannot."""
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and hasattr(stream, "reconfigure"):
                if is_terminal(stream):
                    stream.reconfigure(errors="replace")
                else:
                    stream.reconfigure(encoding="utf-8", errors="surrogateescape")
        return cls(sys.stdout, sys.stderr)

    def piece(self, text: str) -> None:
        """A part of a result, at once."""
        if text:
            self._write(visible(text) if self.on_terminal else text)

    def thought(self, text: str) -> None:
        """A part of what a model thinks: a result too, and dim where that can be shown."""
        if text:
            shown = visible(text) if self.on_terminal else text
            self._write(f"\x1b[2m{shown}\x1b[22m" if self.styled else shown)

    def drawn(self, text: str) -> None:
        """A part of a result with terminal codes in it, ours alone: the rest went through `visible`."""
        self._write(text)

    def _write(self, text: str) -> None:
        """To stdout, at once. BrokenPipeError where the reader is gone, LlmrunError DISK where it takes no
        more."""
        if self._out is None:
            return
        try:
            self._out.write(text)
            self._out.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            hint = "free some space, or write elsewhere"
            raise LlmrunError(DISK, f"stdout cannot be written to: {error.strerror}", hint=hint) from error

    def result(self, text: str) -> None:
        """A result and one newline."""
        self.piece(f"{text}\n")

    def words(self, text: str) -> None:
        """A result that is prose: on a terminal its lines are broken between words."""
        for line in folded(text, self.width):
            self.result(line)

    def json(self, value: object) -> None:
        """A result as JSON: indented on a terminal, one line elsewhere."""
        indent = 2 if self.on_terminal else None
        self.result(json.dumps(value, ensure_ascii=False, indent=indent))

    def records(self, records: Sequence[Record], columns: Columns) -> None:
        """A list of things: a table, a JSON array, or, when quiet, the `name` of each.

        `columns` maps a heading to what makes a cell of a record.
        """
        if self.mode == "json":
            self.json([dict(record) for record in records])
        elif self.quiet:
            for record in records:
                self.result(str(record["name"]))
        else:
            for line in table(records, columns, self.width):
                self.result(line)

    def fields(self, pairs: Pairs) -> None:
        """Names and values, aligned."""
        for line in fields(pairs, self.width):
            self.result(line)

    @property
    def width(self) -> int | None:
        """Columns of the terminal that results go to; None where they go elsewhere."""
        return columns_of(self._out) if self._out and self.on_terminal else None

    def note(self, text: str) -> None:
        """Something worth knowing that is no result; silent when quiet."""
        if not self.quiet:
            self._say(text)

    def warn(self, text: str) -> None:
        """Something the reader should act on."""
        self._say(one_line(text), label="warning:", colour="33")

    def error(self, error: LlmrunError) -> None:
        """`error: WHAT. HOW TO MEND IT`, after the log lines that explain it, where there are some."""
        for line in error.details.get("log", ()):
            self._say(f"  | {line}")
        self._say(one_line(str(error)), label="error:", colour="31")

    def _say(self, text: str, *, label: str = "", colour: str = "") -> None:
        if self._err is None:
            return
        text = f"{label} {text}" if label else text
        if self.notes_on_terminal:
            text = "\n".join(folded(visible(text), columns_of(self._err)))
        if label and self.colour:
            text = f"\x1b[{colour}m{label}\x1b[0m{text[len(label) :]}"
        self._err.write(f"{text}\n")
        self._err.flush()

    @contextmanager
    def waiting(self, text: str) -> Iterator[Callable[[str], None]]:
        """A spinner while something takes its time; nothing unless a person watches stderr. Yields what
        changes its text."""
        if not self.spins:
            yield lambda _text: None
            return
        from llmrun.cli.waiting import Elapsed

        shown = Elapsed(text)
        with self.note_console().status(shown):
            yield lambda text: setattr(shown, "text", text)

    @property
    def spins(self) -> bool:
        """Whether a person watches stderr and wants to."""
        return not self.quiet and self.notes_on_terminal

    def note_console(self) -> Console:
        """stderr for rich, which draws bars and spinners there. Only for a terminal."""
        from rich.console import Console

        return Console(file=self._err, no_color=not self.colour)

    def result_console(self) -> Console:
        """stdout for rich. Only for a terminal."""
        from rich.console import Console

        return Console(file=self._out, no_color=not self.colour)

    def close(self) -> None:
        """Flush. BrokenPipeError where the reader is gone."""
        if self._out is not None:
            self._out.flush()
