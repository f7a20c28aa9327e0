"""A limit on bytes a second, shared by the connections of a pull. Pure: the caller has the clock."""

from __future__ import annotations


class Pace:
    """`rate` in bytes a second; None is no limit."""

    def __init__(self, rate: int | None) -> None:
        self.rate = rate
        self._due = 0.0

    def delay(self, count: int, now: float) -> float:
        """Seconds to wait before reading on, after `count` bytes arrived at the time `now`."""
        if self.rate is None:
            return 0.0
        self._due = max(self._due, now) + count / self.rate
        return self._due - now
