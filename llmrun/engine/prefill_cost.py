"""What prompt tokens cost a step, learnt from the steps that were made. Pure.

A step with prompt tokens takes as long as its answers alone, something more that does not depend on how many
the tokens are, a time for each token, and one for each cell that a row attends to. The three unknowns move:
neighbours come and go, and threads that wait for each other make the fixed part many times as long on a busy
machine. So they are followed by a Kalman filter, which takes from each step what it can tell: steps of
different sizes tell what is fixed from what tokens cost, and a prompt that gets longer tells what cells cost.
A single slow step is not believed altogether, and makes all that is known less sure.
"""

from __future__ import annotations

from math import copysign, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

_DRIFT = 0.05  # how far, as a share, the three may move from step to step
_NOISE = 0.15  # how far, as a share, a step misses what it should take
_BELIEVED = 2.0  # a step further off than so many standard deviations counts as that far off
_SURPRISED = 2.0  # by how much the variances grow after a step that far off
_MOST_UNSURE = 4.0  # times the variances at first that they grow to
_FEW = 16  # tokens: by what they cost the fixed part may drift, and twice that may it be at first
_CELLS = 1000  # that attention to them may at first cost a token a fifth more, give or take two fifths


class Cost(NamedTuple):
    """Seconds of a step: `fixed`, beside what its answers take, for each token, and for each cell of each."""

    fixed: float
    per_token: float
    per_cell: float


class PrefillCost:
    """Begins with what was `known` before, if anything was."""

    def __init__(self, known: Cost | None = None) -> None:
        self.known = known
        if known is not None:
            self._covariance = self._at_first(known.per_token)

    def observe(self, tokens: int, attended: float, depth: float, seconds: float, alone: float) -> None:
        """A step took so long that had so many prompt tokens, each behind `depth` cells on average; its
        answers `alone` would take that. `attended`: the rows' worth of attention that it computed."""
        if self.known is None:
            per_token = max(seconds - alone, 0.1 * seconds) / tokens
            if not per_token:
                return
            self.known = Cost(0.0, per_token / (1 + 0.2 * depth / _CELLS), 0.2 * per_token / _CELLS)
            self._covariance = self._at_first(self.known.per_token)
        fixed, per_token, per_cell = known = self.known
        row = _regressors(tokens, attended, depth)
        few = alone + abs(fixed) + _FEW * per_token
        self._covariance += np.diag(np.square([_DRIFT * few, _DRIFT * per_token, _DRIFT * per_cell]))
        expected = alone + float(row @ known)
        noise = _NOISE * max(expected, 0.1 * seconds)
        variance = self._variance(row) + noise**2
        believed = _BELIEVED * sqrt(variance)
        error = copysign(min(abs(seconds - expected), believed), seconds - expected)
        gain = self._covariance @ row / variance
        self._covariance -= np.outer(gain, row @ self._covariance)
        if abs(seconds - expected) > believed:
            self._surprised()
        moved = (gain * error).tolist()
        # No step shows that tokens cost nothing, or that answers take less beside them than a tenth.
        self.known = Cost(
            max(fixed + moved[0], -0.9 * alone),
            max(per_token + moved[1], 0.5 * per_token),
            max(per_cell + moved[2], 0.0),
        )

    def _surprised(self) -> None:
        """Be less sure of all three, but not without end of what steps of one size never show."""
        assert self.known is not None
        first = self._at_first(self.known.per_token)
        unsure = float((np.diag(self._covariance) / np.diag(first)).max())
        self._covariance *= max(1.0, min(_SURPRISED, _MOST_UNSURE / max(unsure, 1e-9)))

    def deviation(self, tokens: int, attended: float, depth: float, alone: float) -> float:
        """The standard deviation of such a step's seconds, as a share of them; 1 where nothing is known."""
        if self.known is None:
            return 1.0
        row = _regressors(tokens, attended, depth)
        return sqrt(self._variance(row)) / max(alone + float(row @ self.known), 1e-9)

    def _variance(self, row: npt.NDArray[np.float64]) -> float:
        """Of the seconds of such a step, by how unsure the three are."""
        return max(float(row @ self._covariance @ row), 0.0)  # rounding may leave it a little below

    @staticmethod
    def _at_first(per_token: float) -> npt.NDArray[np.float64]:
        """How far off what is known may be: the covariance of the three."""
        return np.diag(np.square([2 * _FEW * per_token, 0.5 * per_token, 0.4 * per_token / _CELLS]))


def _regressors(tokens: int, attended: float, depth: float) -> npt.NDArray[np.float64]:
    """What a step has of each of the three of `Cost`."""
    return np.array([1.0, tokens, attended * depth])
