"""The grammar of Modelfiles, which is Ollama's. In: text. Out: `Statement`s; and values back to text.

A statement is an instruction word in any case, for PARAMETER and MESSAGE one more word, and a value. A value
is the rest of its line without spaces around, or stands in "quotes" or in triple quotes; both may span lines
and end where a line ends in them. Nothing is escaped. `#` starts a comment where a statement could start.
Knows no instruction's meaning. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from llmrun.errors import INVALID_REQUEST, LlmrunError

TRIPLE = '"""'
WITH_NAME = ("PARAMETER", "MESSAGE")


class Place(NamedTuple):
    """Where something stands in the file `where`; line and column count from 1."""

    where: str
    line: int
    column: int

    def error(self, what: str, hint: str = "mend the Modelfile") -> LlmrunError:
        return LlmrunError(INVALID_REQUEST, f"{self}: {what}", hint=hint)

    def __str__(self) -> str:
        return f"{self.where}, line {self.line}, column {self.column}"


class Statement(NamedTuple):
    """`instruction` is in capitals; `name` is empty but for PARAMETER and MESSAGE; `value` is None where
    nothing at all follows, and empty where empty quotes do. `at` is where the instruction stands, `value_at`
    where the value does (the name, where there is one)."""

    instruction: str
    name: str
    value: str | None
    at: Place
    value_at: Place


def statements(text: str, where: str) -> Iterator[Statement]:
    """What `text` states, in order. INVALID_REQUEST where quotes are never closed."""
    lines = [line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n")]
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        column = len(line) - len(line.lstrip()) + 1
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        word, rest, following = _word(line, column)
        at, value_at, name = Place(where, number, column), Place(where, number, following), ""
        if word.upper() in WITH_NAME:
            name, rest, _ = _word(line, following)
        value: str | None = rest.rstrip()
        if rest.startswith('"'):
            value, number = _quoted(rest, lines, number, value_at)
        yield Statement(word.upper(), name, value if value or rest else None, at, value_at)


def _word(line: str, column: int) -> tuple[str, str, int]:
    """The word at `column`, what follows it, and the column of that."""
    word, *rest = line[column - 1 :].split(None, 1) or [""]
    after = rest[0] if rest else ""
    return word, after, len(line) - len(after) + 1


def _quoted(rest: str, lines: list[str], number: int, at: Place) -> tuple[str, int]:
    """The text in the quotes that `rest` starts with, and how many lines are read then."""
    quote = TRIPLE if rest.startswith(TRIPLE) else '"'
    held = [rest.removeprefix(quote)]
    while not held[-1].rstrip().endswith(quote):
        if number == len(lines):
            raise at.error(f"the quote {quote} is never closed", f"end a line with {quote}")
        held.append(lines[number])
        number += 1
    return "\n".join(held).rstrip().removesuffix(quote), number


def format_value(text: str) -> str:
    """`text` in the plainest form that reads back as it. INVALID_REQUEST where the syntax has none."""
    forms = (text, f'"{text}"', f"{TRIPLE}{text}{TRIPLE}")
    for form in forms if text and "\n" not in text else forms[1:]:
        # The trailing space tells a value that ends its line from one that goes on.
        try:
            found = list(statements(f"X {form}\n#", ""))
        except LlmrunError:
            continue
        if [(one.instruction, one.value) for one in found] == [("X", text)]:
            return form
    raise LlmrunError(
        INVALID_REQUEST,
        f"a Modelfile cannot hold the text {text[:60]!r}: it has lines that end in quotes",
        hint='put a space or another character after the """',
    )
