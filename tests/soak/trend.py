"""Whether something grows, judged from samples taken at rest. Pure.

The first fifth of the samples is warm-up. The median of the last third of the others is held against that of
the first third: one odd sample decides nothing, steady growth does.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple


class Growth(NamedTuple):
    """Medians of the first and the last third, and by how much the last may be larger."""

    first: float
    last: float
    allowed: float

    @property
    def grows(self) -> bool:
        return self.last - self.first > self.allowed


def growth(samples: Sequence[float], *, share: float, least: float) -> Growth:
    """`samples` in order of time, three at least. Allowed is a `share` of the first third, or `least`."""
    warm = samples[min(max(1, len(samples) // 5), len(samples) - 2) :]
    third = max(1, len(warm) // 3)
    first, last = median(warm[:third]), median(warm[-third:])
    return Growth(first, last, max(share * first, least))
