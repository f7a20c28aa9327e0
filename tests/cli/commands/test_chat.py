"""`llmrun chat`: line by line from a pipe, and in a real terminal."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest

from llmrun.errors import RUNNER_DIED, LlmrunError
from llmrun.types import Event, GenerateRequest, Started, Text
from tests.api.scripted import MODEL
from tests.cli.conftest import TIMEOUT, Shell


def said(shell: Shell) -> list[list[tuple[str, str]]]:
    """The messages of each request."""
    return [[(m.role, m.content) for m in request.messages or ()] for request in shell.daemon.asked]


HELLO = "Hello wörld"


def test_pipe_every_line_is_a_turn_of_one_conversation(served: Shell) -> None:
    done = served.run("chat", MODEL, stdin='one\n\n"""two\nlines"""\nlast')
    assert (done.code, done.out, done.err) == (0, f"{HELLO}\n" * 3, "")
    assert said(served)[-1] == [
        ("user", "one"),
        ("assistant", HELLO),
        ("user", "two\nlines"),
        ("assistant", HELLO),
        ("user", "last"),
    ]


def test_pipe_slash_commands_work_and_bye_ends(served: Shell) -> None:
    done = served.run("chat", MODEL, "--system", "S", stdin="/set seed 3\nhi\n/clear\nhi\n/bye\nnever\n")
    assert done.code == 0
    assert said(served) == [[("system", "S"), ("user", "hi")]] * 2
    assert served.daemon.asked[0].options.seed == 3


def test_pipe_error_ends_it_with_its_exit_code(served: Shell) -> None:
    done = served.run("chat", MODEL, stdin="/nonsense\nhi\n")
    assert (done.code, done.out) == (2, "")
    assert served.daemon.asked == []


def test_run_without_prompt_from_an_empty_pipe_is_no_chat(served: Shell) -> None:
    assert served.run("run", MODEL, stdin="").code == 2


class Terminal:
    """A chat in a pseudo-terminal: `type` keys, `expect` what the screen shows next."""

    def __init__(self, shell: Shell, *args: str) -> None:
        self._leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        # As its controlling terminal, so that a typed Ctrl-C is a signal.
        take = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
        go = "os.execv(sys.executable, [sys.executable, '-m', 'llmrun', *sys.argv[1:]])"
        self.process = subprocess.Popen(
            [sys.executable, "-c", take + go, *args],
            env={**os.environ, **shell.env, "TERM": "xterm"},
            stdin=follower,
            stdout=follower,
            stderr=follower,
            start_new_session=True,
        )
        os.close(follower)
        self.shown = ""

    def type(self, keys: str) -> None:
        os.write(self._leader, keys.encode())

    def expect(self, pattern: str) -> str:
        """Everything up to and with what matches; it is read no second time."""
        deadline = time.monotonic() + TIMEOUT
        while not (match := re.search(pattern, self.shown, re.DOTALL)):
            if not select.select([self._leader], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise AssertionError(f"{pattern!r} did not appear in {self.shown!r}")
            self._read(pattern)
        before, self.shown = self.shown[: match.end()], self.shown[match.end() :]
        return before

    def _read(self, pattern: str) -> None:
        try:
            data = os.read(self._leader, 65536).decode("utf-8", "replace")
        except OSError:
            raise AssertionError(f"ended before {pattern!r} appeared; it showed {self.shown!r}") from None
        if "\x1b[6n" in data:
            self.type("\x1b[1;1R")  # a terminal answers where its cursor is
        self.shown += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", data)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._leader)


@pytest.fixture
def terminal(served: Shell) -> Iterator[Terminal]:
    terminal = Terminal(served, "run", MODEL)
    terminal.expect(">>>")
    yield terminal
    terminal.close()


def test_terminal_answers_and_leaves_on_ctrl_d(served: Shell, terminal: Terminal) -> None:
    terminal.type("hi\r")
    terminal.expect(f"{HELLO}.*>>>")
    terminal.type("\x04")
    assert terminal.process.wait(TIMEOUT) == 0
    assert said(served) == [[("user", "hi")]]


def test_terminal_several_lines_by_fence_backslash_and_alt_enter(served: Shell, terminal: Terminal) -> None:
    for keys in ('"""one\rtwo"""\r', "one\\\rtwo\r", "one\x1b\rtwo\r"):
        terminal.type(keys)
        terminal.expect(f"{HELLO}.*>>>")
    assert [turns[-1] for turns in said(served)] == [("user", "one\ntwo")] * 3


def test_terminal_ctrl_c_stops_the_answer_and_not_the_program(served: Shell, terminal: Terminal) -> None:
    plain = served.daemon.script

    async def endless(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        yield Started(1, 1)
        while True:
            yield Text(0, "la ")
            await asyncio.sleep(0.01)

    served.daemon.script = endless
    terminal.type("sing\r")
    terminal.expect("la la la ")
    terminal.type("\x03")
    terminal.expect("(stopped).*>>>")
    served.daemon.script = plain
    terminal.type("and now\r")
    terminal.expect(HELLO)
    first, second = said(served)[-1][:2]
    assert first == ("user", "sing")
    assert second[1].startswith("la la la ")


def test_terminal_error_is_shown_and_the_chat_goes_on(served: Shell, terminal: Terminal) -> None:
    plain = served.daemon.script

    async def dies(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        raise LlmrunError(RUNNER_DIED, "killed by SIGKILL", hint="again")
        yield

    served.daemon.script = dies
    terminal.type("hi\r")
    terminal.expect("error: killed by SIGKILL. again.*>>>")
    served.daemon.script = plain
    terminal.type("/set nonsense 1\r")
    terminal.expect("error: there is no option 'nonsense'.*>>>")
    terminal.type("hi\r")
    terminal.expect(HELLO)
    assert said(served)[-1] == [("user", "hi")]


def test_terminal_ctrl_c_at_the_prompt_clears_the_line(served: Shell, terminal: Terminal) -> None:
    terminal.type("half a thought\x03")
    terminal.expect("Ctrl-D or /bye leaves.*>>>")
    terminal.type("/bye\r")
    assert terminal.process.wait(TIMEOUT) == 0
    assert said(served) == []


def test_terminal_history_is_kept_for_oneself(served: Shell, terminal: Terminal, home: Path) -> None:
    terminal.type("remember me\r")
    terminal.expect(f"{HELLO}.*>>>")
    terminal.type("\x04")
    terminal.process.wait(TIMEOUT)
    history = home / "state" / "chat_history"
    assert history.stat().st_mode & 0o077 == 0
    again = Terminal(served, "chat", MODEL)
    again.expect(">>>")
    again.type("\x1b[A\r")
    again.expect(HELLO)
    again.close()
    assert said(served)[-1] == [("user", "remember me")]


def test_terminal_colour_and_control_codes_of_the_model_are_shown_not_obeyed(
    served: Shell, terminal: Terminal
) -> None:
    async def paints(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        from tests.api.scripted import answer

        for event in answer("\x1b]0;title\x07"):
            yield event

    served.daemon.script = paints
    terminal.type("hi\r")
    terminal.expect("␛]0;title␇")


def test_terminal_without_colour_wanted_shows_errors_plain(served: Shell) -> None:
    served.env["NO_COLOR"] = "1"
    leader, follower = pty.openpty()
    done = served.finish("show", "none", stdin=subprocess.DEVNULL, stderr=follower)
    shown = os.read(leader, 4096)
    os.close(leader)
    os.close(follower)
    assert done.code == 3
    assert shown.startswith(b"error: ")
