"""`llmrun serve` as a child process: how it is spawned, awaited, and what it said when it died.

Both the background daemon (`connection`) and the private one (`local`) are such children.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import llmrun
from llmrun.errors import DAEMON_UNREACHABLE, LlmrunError

POLL = 0.05
START_TIMEOUT = 60.0
END_TIMEOUT = 10.0  # the daemon gives running answers five seconds
TAIL_BYTES = 16_384
TAIL_LINES = 12


def environment(env: Mapping[str, str]) -> dict[str, str]:
    """`env` for a child that runs in another folder: a relative home made absolute, and a checkout that
    is not installed importable from anywhere."""
    child = dict(env)
    if home := child.get("LLMRUN_HOME"):
        child["LLMRUN_HOME"] = str(Path(home).expanduser().absolute())
    root = Path(llmrun.__file__).absolute().parent.parent
    if root.name not in ("site-packages", "dist-packages"):
        child["PYTHONPATH"] = os.pathsep.join(filter(None, (str(root), child.get("PYTHONPATH"))))
    return child


@dataclass
class ServeChild:
    """A `llmrun serve` process, its log, and the byte where its part of that begins."""

    process: subprocess.Popen[bytes]
    log: IO[bytes]
    log_start: int

    @classmethod
    def spawn(
        cls, args: Sequence[str], env: Mapping[str, str], log: IO[bytes], *, owned: bool = False
    ) -> ServeChild:
        """Start it in a session of its own, so that a Ctrl-C meant for the command does not reach it.

        owned  its stdin and stdout are pipes to us, and the end of the one tells it to end; else it
               lives on by itself
        """
        start = os.fstat(log.fileno()).st_size
        process = subprocess.Popen(
            [sys.executable, "-m", "llmrun", "serve", *args],
            stdin=subprocess.PIPE if owned else subprocess.DEVNULL,
            stdout=subprocess.PIPE if owned else log,
            stderr=log,
            env=environment(env),
            cwd="/",
            start_new_session=True,
        )
        return cls(process, log, start)

    def wait_until(self, ready: Callable[[], bool], timeout: float = START_TIMEOUT) -> None:
        """Return when `ready()` holds. LlmrunError DAEMON_UNREACHABLE, with what the child said last, where
        it ends before or the time runs out; it is ended then."""
        deadline = time.monotonic() + timeout
        while not ready():
            if (code := self.process.poll()) is not None:
                how = f"signal {-code}" if code < 0 else f"exit code {code}"
                raise self._failure(f"the daemon ended while it started ({how})")
            if time.monotonic() > deadline:
                self.end()
                raise self._failure(f"the daemon did not answer within {timeout:.0f} s")
            time.sleep(POLL)

    def _failure(self, what: str) -> LlmrunError:
        lines = self.last_lines()
        # The child is our own command line: its last words are an error and its mend.
        if lines and lines[-1].startswith("error: "):
            why = lines[-1].removeprefix("error: ")
            return LlmrunError(DAEMON_UNREACHABLE, f"the daemon cannot start: {why}", hint="")
        return LlmrunError(DAEMON_UNREACHABLE, what, hint="see: llmrun logs", log=lines)

    def last_lines(self) -> list[str]:
        """The end of what the child has logged."""
        end = os.fstat(self.log.fileno()).st_size
        start = max(self.log_start, end - TAIL_BYTES)
        # pread leaves the position alone, which the child may share with us.
        text = os.pread(self.log.fileno(), end - start, start).decode("utf-8", "replace")
        return text.splitlines()[-TAIL_LINES:]

    def end(self) -> None:
        """Ask it to end (an owned one by closing its stdin), and in the end make it. Twice is harmless."""
        if self.process.stdin:
            self.process.stdin.close()
        else:
            self.process.terminate()
        try:
            self.process.wait(END_TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()
