"""How short a prompt's steps can be without making it wait much longer. Pure.

What a step takes grows with what lies before it, and so does what short steps waste. Steps of one size are
needlessly short at a prompt's start and long at its end, and the longest is what an answer beside it feels.
So its steps get one bound on their time, the smallest with which the whole prompt takes little more than it
would in the steps that are best for it alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

_PLACES = 8  # of a prompt at which times are compared


class Span(NamedTuple):
    """Tokens of a prompt, `start` <= `done` <= `end`: those before `start` came from the cache, those up to
    `done` are computed."""

    start: int
    done: int
    end: int


class StepSizes(NamedTuple):
    """Sizes of steps, smallest first: `new` prompt tokens. Their seconds: `base`, and `per_cell` for each
    token that lies before them. Each of shape [sizes]."""

    new: npt.NDArray[np.float64]
    base: npt.NDArray[np.float64]
    per_cell: npt.NDArray[np.float64]

    def at(self, depth: float | npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Seconds behind so many tokens."""
        return self.base + self.per_cell * (depth + self.new / 2)

    def best(self, depth: float | npt.NDArray[np.float64], bound: float) -> npt.NDArray[np.intp]:
        """The place of the size that computes most tokens a second of those within `bound`, where none is
        the quickest: one for each depth, which has shape [] or [depths, 1]."""
        return self.best_of(self.at(depth), bound)

    def best_of(self, seconds: npt.NDArray[np.float64], bound: float) -> npt.NDArray[np.intp]:
        """The same, of these `seconds` by depth and size."""
        within = seconds <= bound
        fastest = np.where(within, self.new / seconds, 0.0).argmax(axis=-1)
        places: npt.NDArray[np.intp] = np.where(within.any(axis=-1), fastest, seconds.argmin(axis=-1))
        return places


def shortest_bound(times: StepSizes, span: Span, share: float) -> float:
    """Seconds within which steps can be, where there are such, so that the prompt has about `share` of the
    speed that the best sizes give it, or more: times are compared at a few places of it."""
    part = max(1, span.end - span.start) / _PLACES
    places = np.arange(_PLACES, dtype=np.float64)[:, None]
    seconds = times.at(span.start + part * (places + 0.5))
    each = seconds / times.new  # a token's

    def whole(bound: float) -> float:
        return float(np.take_along_axis(each, times.best_of(seconds, bound)[:, None], axis=1).sum())

    most = whole(np.inf) / share
    bounds = np.sort(seconds, axis=None)  # not `unique`, which imports numpy.ma
    low, high = 0, len(bounds) - 1
    while low < high:  # a larger bound never makes the prompt slower
        middle = (low + high) // 2
        if whole(bounds[middle]) <= most:
            high = middle
        else:
            low = middle + 1
    return float(bounds[low])
