"""What a step costs by its number of rows, learnt from the steps that were made. Pure.

The time of a step is not smooth in its rows: kernels handle some counts together, and two rows may cost twice
as much as one while four cost hardly more than two. So each count has a time of its own, the median of its
newest ones: a busy neighbour spoils single steps. Counts that were never seen, or not for long, are taken to
lie on the line between their neighbours, and beyond the largest to cost little more for each row: what looks
cheaper than it is is tried once, and then known.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

import numpy as np

_NEWEST = 9
_STALE_AFTER = 512  # steps
_GUESSED_SHARE = 0.05  # of one row's time for each further row, until measured


class StepCost:
    """Seconds of a step with 1 to `most` rows, each of which has an output; `known`: what was measured
    before, by rows. Not thread-safe."""

    def __init__(self, most: int, known: Mapping[int, float] | None = None) -> None:
        self.most = most
        self._steps = 0
        self._times = {rows: [seconds] for rows, seconds in (known or {}).items() if 0 < rows <= most}
        self._seen = dict.fromkeys(self._times, 0)
        self._line: list[float] = []

    def observe(self, rows: int, seconds: float) -> None:
        """A step of `rows` rows took so long. More rows than `most` are ignored."""
        if rows > self.most:
            return
        self._steps += 1
        times = self._times.setdefault(rows, [])
        if self._steps - self._seen.get(rows, 0) > _STALE_AFTER:
            times.clear()
        times.append(seconds)
        del times[:-_NEWEST]
        self._seen[rows] = self._steps
        self._line = []

    def scale(self, share: float) -> None:
        """All steps cost that share of what they did: other threads compute them."""
        self._times = {rows: [share * one for one in times] for rows, times in self._times.items()}
        self._line = []

    @property
    def known(self) -> dict[int, float]:
        """What was measured, by rows."""
        return {rows: median(times) for rows, times in self._times.items()}

    def seconds(self, rows: int) -> float:
        """What a step of so many rows will take; 0 for all while nothing was observed."""
        rows = min(rows, self.most)
        if self._fresh(rows):  # what most steps ask; the line is drawn only for guesses to choose among
            return median(self._times[rows])
        if not self._line:
            self._line = self._drawn()
        return self._line[rows]

    def _fresh(self, rows: int) -> bool:
        seen = self._seen.get(rows)
        return seen is not None and self._steps - seen <= _STALE_AFTER

    def _drawn(self) -> list[float]:
        """The seconds of each count from 0 to `most`."""
        fresh = sorted(filter(self._fresh, self._seen))
        if not fresh:
            return [0.0] * (self.most + 1)
        times = [median(self._times[rows]) for rows in fresh]
        counts = np.arange(self.most + 1)
        beyond = np.maximum(counts - fresh[-1], 0) * (_GUESSED_SHARE * times[0])
        line: list[float] = (np.interp(counts, fresh, times) + beyond).tolist()
        return line
