"""A program in a pseudo-terminal: `type` keys, `expect` what is shown next, look at the `screen`."""

from __future__ import annotations

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
from collections.abc import Callable, Mapping

import pyte

TIMEOUT = 60
CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


class _Screen(pyte.HistoryScreen):
    """It is asked where its cursor is, and answers by `say`."""

    def __init__(self, say: Callable[[str], None], columns: int) -> None:
        super().__init__(columns, 24, history=10_000)
        self._say = say

    def write_process_input(self, data: str) -> None:
        self._say(data)


class Terminal:
    """`llmrun ARGS` in an emulated terminal of 24 lines and `columns`.

    shown  what it wrote that nobody has expected yet, without the terminal's codes
    raw    everything it wrote, as it came
    """

    def __init__(
        self, env: Mapping[str, str], *args: str, columns: int = 80, program: str | None = None
    ) -> None:
        """`program`: another than llmrun, by its path."""
        words = [program, *args] if program else [sys.executable, "-m", "llmrun", *args]
        self._leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        # As its controlling terminal, so that a typed Ctrl-C is a signal; also where the tests run in the
        # background of a script, whose children ignore it.
        take = (
            "import fcntl, os, signal, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
            "signal.signal(signal.SIGINT, signal.SIG_DFL); "
        )
        go = "os.execv(sys.argv[1], sys.argv[1:])"
        self.process = subprocess.Popen(
            [sys.executable, "-c", take + go, *words],
            env={"TERM": "xterm", "LANG": "C.UTF-8", **env},
            stdin=follower,
            stdout=follower,
            stderr=follower,
            start_new_session=True,
        )
        os.close(follower)
        self.shown = ""
        self.raw = ""
        self._screen = _Screen(self.type, columns)
        self._stream = pyte.Stream(self._screen)

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

    def screen(self) -> list[str]:
        """What a person sees who scrolls up to the beginning, without empty lines at the end."""
        columns = range(self._screen.columns)
        gone = ["".join(line[column].data for column in columns) for line in self._screen.history.top]
        text = "\n".join(line.rstrip() for line in [*gone, *self._screen.display])
        return text.rstrip("\n").split("\n")

    def _read(self, pattern: str) -> None:
        try:
            data = os.read(self._leader, 65536).decode("utf-8", "replace")
        except OSError:
            raise AssertionError(f"ended before {pattern!r} appeared; it showed {self.shown!r}") from None
        self._stream.feed(data)
        self.raw += data
        self.shown += CONTROL.sub("", data)

    def close(self) -> None:
        """End the program, however; twice is harmless."""
        if self._leader < 0:
            return
        self.process.kill()
        self.process.wait()
        os.close(self._leader)
        self._leader = -1
