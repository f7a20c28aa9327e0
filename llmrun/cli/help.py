"""How `--help` looks: what can be written, by its name, and what it is; the same whatever Typer's release.

Goes in: a Typer command. Comes out: rows for its help, and for the tables of the docs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from typer.core import TyperCommand

from llmrun.cli.session import session_of

Rows = Sequence[tuple[str, str]]
_SHELL_WORDS = re.compile(r"""(?:[^\s"']|"[^"]*"|'[^']*')+""")


def spelt(words: str) -> str:
    """An argument or option without the type behind its name; one that has no other name is in capitals."""
    bare = re.sub(r" <[^>]*>$", "", words)
    kind = re.search(r" <(\w+)[^>]*>$", words)
    return f"{bare} {kind[1].upper()}" if kind and bare.startswith("-") else bare


def rows_of(command: Any, context: Any, kind: str) -> Rows:
    """The arguments or options (`kind` is "argument" or "option") that a command's help has."""
    records = (each.get_help_record(context) for each in command.get_params(context) if is_a(each, kind))
    return [(spelt(words), about) for words, about in filter(None, records)]


def is_a(parameter: Any, kind: str) -> bool:
    return bool(parameter.param_type_name == kind)


def write_rows(formatter: Any, title: str, rows: Rows) -> None:
    """A section of two columns; on a narrow terminal the second begins below what is long in the first."""
    if rows:
        with formatter.section(title):
            formatter.write_dl(rows, col_max=min(30, formatter.width * 2 // 5))


def write_options(command: Any, context: Any, formatter: Any) -> None:
    """The sections of a command's arguments and options."""
    write_rows(formatter, "Arguments", rows_of(command, context, "argument"))
    write_rows(formatter, "Options", rows_of(command, context, "option"))


def fitted(page: str, width: int | None) -> str:
    """A help page of which no line is wider than a terminal: of commands shown as examples long ones go on in
    further lines, as a shell takes them."""
    if width is None:
        return page
    return "\n".join(line if len(line) <= width else _continued(line, width) for line in page.split("\n"))


def _continued(line: str, width: int) -> str:
    indent = line[: len(line) - len(line.lstrip())]
    first, *words = _SHELL_WORDS.findall(line)
    lines = [indent + first]
    for word in words:
        if len(lines[-1]) + len(word) + len(" \\ ") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(f"{indent}  {word}")
    return " \\\n".join(lines)


class Command(TyperCommand):
    """A command whose help is ours."""

    def get_help(self, ctx: Any) -> str:
        return fitted(super().get_help(ctx), session_of(ctx).out.width)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [re.sub("[{}]", "", piece) for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        write_options(self, ctx, formatter)
