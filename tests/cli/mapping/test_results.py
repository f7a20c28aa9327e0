from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmrun.cli.mapping.results import Done, Result, ResultsFile, answered, failed
from llmrun.client.wire import Completion, WholeChoice, WholeMessage, WireUsage
from llmrun.errors import CONTEXT_LENGTH, USAGE, LlmrunError


def reply(text: str, reason: str = "stop") -> Completion:
    return Completion([WholeChoice(WholeMessage(text), reason)], WireUsage(5, 2))


def test_answered_has_what_was_asked_and_said() -> None:
    assert answered(3, "line", reply("Hi"), as_value=False) == {
        "index": 3,
        "input": "line",
        "output": "Hi",
        "finish_reason": "stop",
        "usage": {"prompt": 5, "completion": 2, "cached": 0},
    }


def test_answered_json_is_its_value_and_a_cut_one_is_an_error() -> None:
    assert answered(0, "x", reply('{"a": [1]}'), as_value=True)["output"] == {"a": [1]}
    cut = answered(0, "x", reply('{"a": [', "length"), as_value=True)
    assert cut["output"] == '{"a": ['
    assert cut["error"]["message"] == "the answer ended before its JSON did (length)"
    assert Result(cut, 0).failed


def test_failed_says_why() -> None:
    record = failed(1, {"a": 1}, LlmrunError(CONTEXT_LENGTH, "too long", hint="cut it"))
    assert record["error"] == {"code": "context_length_exceeded", "message": "too long. cut it"}
    assert record["output"] is None
    assert Result(record, 0).failed


def test_text_of_half_a_surrogate_pair_is_still_utf_8() -> None:
    record = failed(0, "\ud800ä", LlmrunError(USAGE, "no"))
    assert json.loads(Result(record, 0).text().encode())["input"] == "\ud800ä"
    assert "ä" in Result(failed(0, "ä", LlmrunError(USAGE, "no")), 0).text()


def test_done_knows_lines_and_their_inputs() -> None:
    done = Done()
    done.add(2, {"a": "ä\ud800"})
    assert done.has(2, {"a": "ä\ud800"})
    assert not done.has(0, "x")
    assert not done.has(7, "x")
    with pytest.raises(LlmrunError, match="line 3 of stdin is not the one"):
        done.has(2, {"a": "b"})


def line(index: int, given: object = "x") -> str:
    return Result(failed(index, given, LlmrunError(USAGE, "no")), 0).text()


def test_file_appends_and_a_later_one_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    first = ResultsFile(path)
    assert first.count == 0
    first.write(line(0, "a"))
    first.close()
    second = ResultsFile(path)
    assert (second.count, second.done.has(0, "a"), second.done.has(1, "b")) == (1, True, False)
    second.write(line(1, "ä"))
    second.close()
    assert path.read_text("utf-8") == f"{line(0, 'a')}\n{line(1, 'ä')}\n"


@pytest.mark.parametrize("kept", [1, 10, 30])
def test_file_whose_last_line_was_not_whole_loses_only_that(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(f"{line(0)}\n{line(1)[:kept]}", "utf-8")
    file = ResultsFile(path)
    file.close()
    assert file.count == 1
    assert path.read_text("utf-8") == f"{line(0)}\n"


@pytest.mark.parametrize("text", ["my notes", "my notes\n", "[]\n", '{"index": "a", "input": 1}\n', "{}\n"])
def test_file_that_holds_something_else_is_left_as_it_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(text, "utf-8")
    with pytest.raises(LlmrunError, match="no result of"):
        ResultsFile(path)
    assert path.read_text("utf-8") == text


def test_file_without_room_says_so() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    with pytest.raises(OSError, match="No space left"):
        _write_to(full)


def _write_to(path: Path) -> None:
    import os

    file = ResultsFile.__new__(ResultsFile)
    file._file = os.open(path, os.O_WRONLY)
    try:
        file.write(line(0))
    finally:
        file.close()
