from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import termios

import pytest

from llmrun.cli.output import Mode, Output, columns_of, one_line
from llmrun.errors import NOT_FOUND, USAGE, LlmrunError


class Terminal(io.StringIO):
    """A stream that a person watches."""

    def isatty(self) -> bool:
        return True


def outputs(*, terminal: bool, **env: str) -> tuple[Output, io.StringIO, io.StringIO]:
    kind = Terminal if terminal else io.StringIO
    out, err = kind(), kind()
    return Output(out, err, env=env), out, err


def test_piece_elsewhere_than_on_a_terminal_is_the_exact_text() -> None:
    output, out, _ = outputs(terminal=False)
    text = "a\x1b[31mb\r\n\tc\x07 \U0001f600"
    output.piece(text)
    assert out.getvalue() == text


def test_piece_on_a_terminal_shows_control_characters_instead_of_obeying_them() -> None:
    output, out, _ = outputs(terminal=True)
    output.piece("a\x1b[2Jb\n\tc\x9b1m")
    assert out.getvalue() == "a␛[2Jb\n\tc�1m"


def test_error_is_one_line_and_plain_where_nobody_watches() -> None:
    output, out, err = outputs(terminal=False)
    output.error(LlmrunError(USAGE, "two\nlines", hint="mend\nit"))
    assert err.getvalue() == "error: two lines. mend it\n"
    assert out.getvalue() == ""


def test_error_on_a_terminal_is_red_and_cannot_smuggle_codes() -> None:
    output, _, err = outputs(terminal=True)
    output.error(LlmrunError(USAGE, "name \x1b[32m", hint=""))
    assert err.getvalue() == "\x1b[31merror:\x1b[0m name ␛[32m\n"


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_error_without_colour_wanted_has_none(env: dict[str, str]) -> None:
    output, _, err = outputs(terminal=True, **env)
    output.error(LlmrunError(USAGE, "x", hint=""))
    assert err.getvalue() == "error: x\n"


def test_error_with_log_lines_shows_them_first() -> None:
    output, _, err = outputs(terminal=False)
    output.error(LlmrunError(USAGE, "died", hint="", log=["one", "two"]))
    assert err.getvalue() == "  | one\n  | two\nerror: died\n"


def test_quiet_keeps_results_warnings_and_errors() -> None:
    output, out, err = outputs(terminal=False)
    output.quiet = True
    output.note("nice to know")
    output.warn("act on it")
    output.result("the result")
    assert (out.getvalue(), err.getvalue()) == ("the result\n", "warning: act on it\n")


COLUMNS = {"NAME": lambda record: record["name"], "N": lambda record: str(record["n"])}
RECORDS = [{"name": "a", "n": 1}, {"name": "longer", "n": 22}]


def test_records_follow_the_mode() -> None:
    def shown(mode: Mode, *, quiet: bool) -> str:
        output, out, _ = outputs(terminal=False)
        output.mode, output.quiet = mode, quiet
        output.records(RECORDS, COLUMNS)
        return out.getvalue()

    as_json = '[{"name": "a", "n": 1}, {"name": "longer", "n": 22}]\n'
    assert shown("human", quiet=False) == "NAME    N\na       1\nlonger  22\n"
    assert shown("human", quiet=True) == "a\nlonger\n"
    assert shown("json", quiet=False) == shown("json", quiet=True) == as_json


def test_records_and_fields_are_laid_out_for_the_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "14")
    shown = {}
    for terminal in (True, False):
        output, out, _ = outputs(terminal=terminal)
        output.records([{"name": "a-longer-name", "n": 22}], COLUMNS)
        output.fields([("key", "one two three")])
        shown[terminal] = out.getvalue()
    assert shown == {
        True: "NAME  a-longer-name\nN     22\nkey  one two\n     three\n",
        False: "NAME           N\na-longer-name  22\nkey  one two three\n",
    }


def test_prose_is_broken_between_words_on_the_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "14")
    shown = {}
    for terminal in (True, False):
        output, out, err = outputs(terminal=terminal)
        output.words("it is so and not else")
        output.note("a note of many words")
        output.error(LlmrunError(NOT_FOUND, "there is no such thing", hint="look"))
        shown[terminal] = out.getvalue(), err.getvalue()
    red = "\x1b[31merror:\x1b[0m"
    assert shown == {
        True: ("it is so and\nnot else\n", f"a note of many\nwords\n{red} there\nis no such\nthing. look\n"),
        False: ("it is so and not else\n", "a note of many words\nerror: there is no such thing. look\n"),
    }


def test_columns_are_those_of_the_stream_unless_the_environment_says_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    leader, follower = pty.openpty()
    with os.fdopen(leader, "rb"), os.fdopen(follower, "w") as terminal:
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 33, 0, 0))
        assert columns_of(terminal) == 33
        monkeypatch.setenv("COLUMNS", "44")
        assert columns_of(terminal) == 44
        monkeypatch.delenv("COLUMNS")
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 0, 0, 0))
        assert columns_of(terminal) == 80


def test_json_is_indented_for_a_person_only() -> None:
    for terminal, expected in ((True, '{\n  "ä": 1\n}\n'), (False, '{"ä": 1}\n')):
        output, out, _ = outputs(terminal=terminal)
        output.json({"ä": 1})
        assert out.getvalue() == expected


def test_waiting_where_nobody_watches_writes_nothing() -> None:
    output, out, err = outputs(terminal=False)
    with output.waiting("loading"):
        pass
    assert (out.getvalue(), err.getvalue()) == ("", "")


def test_closed_streams_swallow_what_is_written() -> None:
    output = Output(None, None)
    output.result("x")
    output.note("y")
    output.close()


def test_one_line_joins_lines() -> None:
    assert one_line(" a\n\n  b  c\n") == "a b  c"
