"""How often and how much: requests a minute, tokens a day. Pure; every moment is given.

Minutes are counted on a clock that nobody sets (seconds, monotonic), days on the calendar (unix seconds): a
wall clock that is set back or forward moves the day's end, never the rate.
"""

from __future__ import annotations

from dataclasses import dataclass

MINUTE = 60.0
DAY = 86400


@dataclass
class _Bucket:
    left: float
    at: float


class RateLimiter:
    """A bucket per id that holds a minute's requests and fills evenly: all of them may come at once, the next
    when a minute's share of the time is over."""

    def __init__(self) -> None:
        self._buckets: dict[str, _Bucket] = {}

    def take(self, id: str, per_minute: int, now: float) -> float:
        """0 where one more request may pass, and then it counts; else the seconds until one may."""
        bucket = self._buckets.setdefault(id, _Bucket(per_minute, now))
        rate = per_minute / MINUTE
        bucket.left = min(float(per_minute), bucket.left + (now - bucket.at) * rate)
        bucket.at = now
        if bucket.left >= 1.0:
            bucket.left -= 1.0
            return 0.0
        return (1.0 - bucket.left) / rate


def day_of(now: float) -> int:
    """The number of the day, in UTC."""
    return int(now // DAY)


def until_tomorrow(now: float) -> float:
    """Seconds until the next day begins, in UTC."""
    return DAY - now % DAY
