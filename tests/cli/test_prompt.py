from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from llmrun.cli import prompt
from llmrun.cli.prompt import StandardInput, assemble, gather
from llmrun.errors import USAGE, LlmrunError
from tests.cli.conftest import piped


class Notes(list[str]):
    """What the person was told."""

    def __call__(self, text: str) -> None:
        self.append(text)


def closed() -> StandardInput:
    return StandardInput(None, Notes())


@pytest.fixture
def pipe_of(request: pytest.FixtureRequest) -> Callable[[str], StandardInput]:
    def make(text: str) -> StandardInput:
        stream = piped(text)
        request.addfinalizer(stream.close)
        return StandardInput(stream, Notes())

    return make


Pipe = Callable[[str], StandardInput]


def test_gather_prompt_then_blank_line_then_stdin(pipe_of: Pipe) -> None:
    assert gather(["Translate", "this:"], [], pipe_of("The sky\n")) == "Translate this:\n\nThe sky"


def test_gather_only_stdin(pipe_of: Pipe) -> None:
    assert gather([], [], pipe_of("a\n\nb\n")) == "a\n\nb"


def test_gather_closed_stdin_is_not_waited_for() -> None:
    assert gather(["hi"], [], closed()) == "hi"


@pytest.mark.parametrize("text", ["", "\n", "  \n"])
def test_gather_empty_stdin_adds_nothing(pipe_of: Pipe, text: str) -> None:
    assert gather(["hi"], [], pipe_of(text)) == "hi"
    assert gather([], [], pipe_of(text)) == ""


def test_gather_files_come_between_in_their_order(pipe_of: Pipe, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(f"file {name}\n")
    files = [str(tmp_path / "two"), str(tmp_path / "one")]
    assert gather(["P"], files, pipe_of("in")) == "P\n\nfile two\n\nfile one\n\nin"


def test_gather_dash_as_file_puts_stdin_there_and_not_again(pipe_of: Pipe, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("F")
    assert gather(["P"], ["-", str(tmp_path / "f")], pipe_of("in")) == "P\n\nin\n\nF"


def test_gather_dash_as_word_is_stdin_and_no_word(pipe_of: Pipe) -> None:
    assert gather(["P", "-"], [], pipe_of("in")) == "P\n\nin"


def test_gather_from_a_terminal_reads_nothing_unless_told() -> None:
    leader, follower = os.openpty()
    os.write(leader, b"typed\n\x04")
    with os.fdopen(follower) as terminal:
        notes = Notes()
        assert gather(["hi"], [], StandardInput(terminal, notes)) == "hi"
        assert gather(["hi", "-"], [], StandardInput(terminal, notes)) == "hi\n\ntyped"
        assert len(notes) == 1
    os.close(leader)


def test_gather_file_that_is_not_there_is_named() -> None:
    with pytest.raises(LlmrunError, match="no/such/file") as caught:
        gather(["hi"], ["no/such/file"], closed())
    assert caught.value.kind is USAGE


def test_gather_bytes_that_are_no_text_are_refused(pipe_of: Pipe, tmp_path: Path) -> None:
    (tmp_path / "bin").write_bytes(b"ab\xff")
    with pytest.raises(LlmrunError, match=r"bin is not UTF-8 text \(byte 2\)"):
        gather(["hi"], [str(tmp_path / "bin")], closed())
    with pytest.raises(LlmrunError, match="stdin is not UTF-8"):
        gather(["hi"], [], pipe_of("\udcff"))


def test_gather_word_that_is_no_text_is_refused() -> None:
    with pytest.raises(LlmrunError) as caught:
        gather(["\udcff"], [], closed())
    assert caught.value.kind is USAGE


def test_byte_order_mark_is_not_part_of_the_prompt(pipe_of: Pipe) -> None:
    assert gather([], [], pipe_of("\ufeffhi")) == "hi"


def test_read_silent_pipe_tells_what_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompt, "PATIENCE", 0.01)
    read, write = os.pipe()
    told = threading.Event()

    def note(text: str) -> None:
        assert "stdin" in text
        told.set()

    def end() -> None:
        assert told.wait(10)
        os.write(write, b"late")
        os.close(write)

    thread = threading.Thread(target=end)
    thread.start()
    with os.fdopen(read) as stream:
        assert StandardInput(stream, note).read() == "late"
    thread.join()


def test_assemble_keeps_inner_lines_and_drops_one_final_newline() -> None:
    assert assemble(["a\n", "b\n\n", "c\r\n"]) == "a\n\nb\n\n\nc"
