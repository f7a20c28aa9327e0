"""How times are spread, in bounded memory: counts in buckets, each 9 % wider than the one before. Pure.

A percentile is the middle of its bucket, at most 4 % off. Adding a time is one search among 200 numbers, so
that it can be done for every token.
"""

from __future__ import annotations

from bisect import bisect_right

_LEAST = 1e-5  # seconds; all that is shorter counts as this
_GROWTH: float = 2 ** (1 / 8)
_BOUNDS: tuple[float, ...] = tuple(_LEAST * _GROWTH**n for n in range(200))  # up to five minutes
_MIDDLE: float = _GROWTH**0.5


class Latencies:
    """Times in seconds. `most`: when as many are counted, all counts are halved, so that percentiles follow
    what happened of late; None: never. `longest` is the longest since the beginning. Not thread-safe."""

    __slots__ = ("_counts", "_most", "_total", "longest")

    def __init__(self, most: int | None = None) -> None:
        self._counts = [0] * (len(_BOUNDS) + 1)
        self._most = most
        self._total = 0
        self.longest = 0.0

    def add(self, seconds: float) -> None:
        """Count a time."""
        self._counts[bisect_right(_BOUNDS, seconds)] += 1
        self._total += 1
        if seconds > self.longest:
            self.longest = seconds

    def merge(self, other: Latencies) -> None:
        """Count all the times of another."""
        if not other._total:
            return
        self._counts = [mine + theirs for mine, theirs in zip(self._counts, other._counts, strict=True)]
        self._total += other._total
        self.longest = max(self.longest, other.longest)
        while self._most is not None and self._total > self._most:
            self._counts = [count // 2 for count in self._counts]
            self._total = sum(self._counts)

    def percentile(self, share: float) -> float:
        """The time that a share of all is not above, `share` from 0 to 1; 0 while nothing was counted."""
        wanted, seen = share * self._total, 0
        for bucket, count in enumerate(self._counts):
            seen += count
            if count and seen >= wanted:
                return min(_BOUNDS[max(bucket, 1) - 1] * _MIDDLE, self.longest)
        return 0.0
