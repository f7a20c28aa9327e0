"""What a runner writes to its stderr: into our log line by line, the last lines kept for its obituary."""

from __future__ import annotations

import logging
import re
from collections import deque

from llmrun.log import record_of

KEPT_LINES = 20
LONGEST_LINE = 128 * 1024  # bytes; a record of ours is shorter
LONGEST_KEPT = 4000  # characters
LAST_WORDS = 3
"""Lines at a death's end in which its reason is sought."""

_MEMORY = re.compile(
    r"MemoryError|bad_alloc|cannot allocate memory|memory allocation|out of memory|thread creation failed",
    re.IGNORECASE,
)


class RunnerLog:
    """Bytes in, log records out, under `llmrun.runner.NAME`.

    A line that is a record in the JSON form of `llmrun.log` keeps its level, its request and its fields; any
    other (what native code prints before it aborts) is taken as it is. Endless lines are cut.
    """

    def __init__(self, name: str) -> None:
        self._log = logging.getLogger(f"llmrun.runner.{name}")
        self._rest = b""
        self._tail: deque[str] = deque(maxlen=KEPT_LINES)

    @property
    def tail(self) -> list[str]:
        """The last lines, oldest first."""
        return list(self._tail)

    @property
    def tells_of_memory(self) -> bool:
        """Whether the last words are those of a process that got no more memory: Python's, C++'s, a
        library's."""
        return any(_MEMORY.search(line) for line in self.tail[-LAST_WORDS:])

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
        line = line.strip()
        if not line:
            return
        record = record_of(line, self._log.name)
        if record is None:
            text = line[:LONGEST_KEPT].decode("utf-8", "replace")
            self._log.info("%s", text)
        else:
            text = "\n".join(filter(None, (record.getMessage(), record.exc_text)))
            if self._log.isEnabledFor(record.levelno):
                self._log.handle(record)
        self._tail.extend(each[:LONGEST_KEPT] for each in text.splitlines())
