"""Standard input as lines of work. Bytes in, `Line`s out as they arrive; only one is held at a time."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from llmrun.cli.prompt_template import PromptTemplate
from llmrun.errors import USAGE, LlmrunError

_AT_ONCE = 65_536


@dataclass(frozen=True)
class Line:
    """One line of the input. index: its number, from 0. end: bytes of the input up to its end."""

    index: int
    data: bytes
    end: int


def read_lines(descriptor: int) -> Iterator[Line]:
    """The lines that are not blank, which count all the same; the last needs no line end.

    Reads the descriptor itself: a thread that waits in Python's own buffer would keep the program from
    ending.
    """
    rest, index, end = b"", 0, 0
    while data := os.read(descriptor, _AT_ONCE):
        *whole, rest = (rest + data).split(b"\n") if b"\n" in data else (rest + data,)
        for line in whole:
            end += len(line) + 1
            if line.strip():
                yield Line(index, line.removesuffix(b"\r"), end)
            index += 1
    if rest.strip():
        yield Line(index, rest.removesuffix(b"\r"), end + len(rest))


def size_of(descriptor: int) -> int | None:
    """Bytes that are left to read where that is known, for it is a file; None for a pipe or a terminal."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        return None
    return max(0, status.st_size - os.lseek(descriptor, 0, os.SEEK_CUR))


@dataclass(frozen=True)
class Asked:
    """What one line asks. input: the line as results repeat it. prompt: None where the line cannot be one,
    and `problem` says why."""

    input: Any
    prompt: str | None
    problem: LlmrunError | None = None


def asked(line: Line, template: PromptTemplate) -> Asked:
    """The prompt of a line: its text for `{}`; for `{field}` it is a JSON object."""
    try:
        text = line.data.decode("utf-8")
    except UnicodeDecodeError as error:
        problem = _wrong(f"is not UTF-8 text (byte {error.start})")
        return Asked(line.data.decode("utf-8", "replace"), None, problem)
    if not any(template.names):
        return Asked(text, template.fill(text, {}))
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        return Asked(text, None, _wrong(f"is not JSON, {_FIELDS}: {error}"))
    if not isinstance(fields, Mapping):
        return Asked(fields, None, _wrong(f"is not a JSON object, {_FIELDS}"))
    try:
        prompt = template.fill(text, fields)
        prompt.encode()
    except LlmrunError as error:
        return Asked(fields, None, error)
    except UnicodeEncodeError:
        return Asked(fields, None, _wrong("holds half a surrogate pair, which is no text"))
    return Asked(fields, prompt)


_FIELDS = "which a prompt's {name} is a field of ({} is the line itself)"


def _wrong(what: str) -> LlmrunError:
    return LlmrunError(USAGE, f"the line {what}", hint="")
