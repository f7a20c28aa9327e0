from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from llmrun.cli.mapping.lines import Line, asked, read_lines, size_of
from llmrun.cli.prompt_template import PromptTemplate


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    yield read, write
    os.close(read)


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"a\nb\n", [Line(0, b"a", 2), Line(1, b"b", 4)]),
        (b"a\n\n \nb", [Line(0, b"a", 2), Line(3, b"b", 6)]),
        (b"a\r\nb", [Line(0, b"a", 3), Line(1, b"b", 4)]),
        ("a\u2028b\n".encode(), [Line(0, "a\u2028b".encode(), 6)]),
        (b"x" * 200_000 + b"\ny\n", [Line(0, b"x" * 200_000, 200_001), Line(1, b"y", 200_003)]),
    ],
)
def test_read_lines_counts_blank_ones_and_keeps_ends(
    pipe: tuple[int, int], data: bytes, lines: list[Line]
) -> None:
    def write() -> None:
        with os.fdopen(pipe[1], "wb") as file:
            file.write(data)

    thread = threading.Thread(target=write)
    thread.start()
    assert list(read_lines(pipe[0])) == lines
    thread.join()


def test_read_lines_gives_a_line_before_the_input_ends(pipe: tuple[int, int]) -> None:
    os.write(pipe[1], b"first\nsec")
    lines = read_lines(pipe[0])
    assert next(lines) == Line(0, b"first", 6)
    os.write(pipe[1], b"ond")
    os.close(pipe[1])
    assert list(lines) == [Line(1, b"second", 12)]


def test_size_of_a_file_is_what_is_left_and_of_a_pipe_unknown(pipe: tuple[int, int], tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"0123456789")
    with path.open("rb", buffering=0) as file:
        file.read(4)
        assert size_of(file.fileno()) == 6
    assert size_of(pipe[0]) is None
    os.close(pipe[1])


@pytest.mark.parametrize(
    ("template", "data", "given", "prompt"),
    [
        ("Say {}!", b" {x} ", " {x} ", "Say  {x} !"),
        ("{a}", b'{"a": 1, "b": 2}', {"a": 1, "b": 2}, "1"),
        ("{a} of {}", b'{"a":1}', {"a": 1}, '1 of {"a":1}'),
    ],
)
def test_asked_makes_a_prompt_of_a_line(template: str, data: bytes, given: object, prompt: str) -> None:
    found = asked(Line(0, data, 0), PromptTemplate(template))
    assert (found.input, found.prompt, found.problem) == (given, prompt, None)


@pytest.mark.parametrize(
    ("template", "data", "problem"),
    [
        ("{}", b"\xff", "the line is not UTF-8 text (byte 0)"),
        ("{a}", b"a", "the line is not JSON"),
        ("{a}", b"[1]", "the line is not a JSON object"),
        ("{a}", b'{"b": 1}', "there is no field 'a'. there are: b"),
        ("{a}", b'{"a": "\\ud800"}', "the line holds half a surrogate pair"),
        ("{a}", b"[" * 100_000, "the line is not JSON"),
    ],
)
def test_asked_says_what_is_wrong_with_a_line(template: str, data: bytes, problem: str) -> None:
    found = asked(Line(0, data, 0), PromptTemplate(template))
    assert found.prompt is None
    assert str(found.problem).startswith(problem)
