"""What a runner writes to its stderr: into our log line by line, the last lines kept for its obituary."""

from __future__ import annotations

import logging
import re
from collections import deque

KEPT_LINES = 20
LONGEST_LINE = 4000

_RECORD = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ([DIWEC]) (.*)")
_LEVELS = {
    b"D": logging.DEBUG,
    b"I": logging.INFO,
    b"W": logging.WARNING,
    b"E": logging.ERROR,
    b"C": logging.CRITICAL,
}


class RunnerLog:
    """Bytes in, log records out, under `llmrun.runner.NAME`.

    A line that has the text form of `llmrun.log` keeps its level and loses its time; any other (what
    native code prints before it aborts) is taken as it is. Endless lines are cut.
    """

    def __init__(self, name: str) -> None:
        self._log = logging.getLogger(f"llmrun.runner.{name}")
        self._rest = b""
        self._tail: deque[str] = deque(maxlen=KEPT_LINES)

    @property
    def tail(self) -> list[str]:
        """The last lines, oldest first."""
        return list(self._tail)

    def feed(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LONGEST_LINE:
            lines.append(self._rest)
            self._rest = b""
        for line in lines:
            self._take(line)

    def close(self) -> None:
        """Take the last line, where it has no end."""
        self._take(self._rest)
        self._rest = b""

    def _take(self, line: bytes) -> None:
        line = line.strip()[:LONGEST_LINE]
        if not line:
            return
        level, message = logging.INFO, line
        if record := _RECORD.fullmatch(line):
            level, message = _LEVELS[record[1]], record[2]
        text = message.decode("utf-8", "replace")
        self._tail.append(text)
        self._log.log(level, "%s", text)
