"""How a pull reports itself. In: what the transports do. Out: `PullProgress` to one callback.

Called on the thread that pulls. An exception from the callback ends the pull; what was fetched is kept and
the next pull goes on from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from llmrun.store.pace import Pace

Step = Literal["note", "download", "verify", "quantize"]


@dataclass(frozen=True)
class PullProgress:
    """step "note": `text` is one line worth showing (why this file, which source failed); the numbers stand
    still. Otherwise `completed` of `total` bytes (None: not known) of `text`, the file's name. `completed`
    never falls within a step."""

    step: Step
    text: str
    completed: int
    total: int | None


class Meter:
    """Counts bytes over all files and sources of one pull, and holds its `pace` (`limit_rate`: bytes a
    second, None for as fast as it goes)."""

    def __init__(
        self, on_progress: Callable[[PullProgress], None] | None, limit_rate: int | None = None
    ) -> None:
        self.pace = Pace(limit_rate)
        self._report = on_progress or (lambda _: None)
        self._total: int | None = None
        self._finished = 0
        self._highest: dict[Step, int] = {}

    def expect(self, total: int | None) -> None:
        """A source starts over: `total` bytes are to come, nothing of them is there yet."""
        self._total = total
        self._finished = 0

    def note(self, text: str) -> None:
        self._report(PullProgress("note", text, self._highest.get("download", 0), self._total))

    def at(self, name: str, count: int, size: int | None, step: Step = "download") -> None:
        """`count` bytes of the file `name`, `size` bytes long, are done."""
        done = self._highest[step] = max(self._highest.get(step, 0), self._finished + count)
        total = self._total if self._total is not None else size
        self._report(PullProgress(step, name, done, None if total is None else max(total, done)))

    def file_done(self, size: int) -> None:
        self._finished += size
