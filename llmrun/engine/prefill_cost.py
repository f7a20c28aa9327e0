"""What prompt tokens cost a step, learnt from the steps that were made. Pure.

A step with prompt tokens takes as long as its answers alone, something more that does not depend on how many
the tokens are, and a time for each token. The two unknowns move: attention reads ever more cells, neighbours
come and go, and threads that wait for each other make the fixed part many times as long on a busy machine.
So they are followed by a Kalman filter, which takes from each step what it can tell: steps of different sizes
tell the two apart, steps of one size only their sum. A single slow step is not believed altogether.
"""

from __future__ import annotations

from math import copysign, sqrt

_DRIFT = 0.05  # how far, as a share, the two may move from step to step
_NOISE = 0.15  # how far, as a share, a step misses what it should take
_BELIEVED = 2.0  # a step further off than so many standard deviations counts as that far off
_FEW = 16  # tokens: by what they cost the fixed part may drift too
_LEAST_SHARE = 0.1  # of the first step, that its tokens take at least


class PrefillCost:
    """`fixed` seconds beside what the answers take, and `per_token`. Both are 0 while nothing is known."""

    def __init__(self, fixed: float = 0.0, per_token: float = 0.0) -> None:
        self.fixed = fixed
        self.per_token = per_token
        # Of what was known before either may be half of itself off, and the fixed part ten tokens.
        self._variances = ((0.5 * fixed) ** 2 + (10 * per_token) ** 2, 0.0, (0.5 * per_token) ** 2)

    @property
    def known(self) -> tuple[float, float] | None:
        """Both, where there is anything to keep."""
        return (self.fixed, self.per_token) if self.per_token else None

    def observe(self, tokens: int, seconds: float, alone: float) -> None:
        """A step with so many prompt tokens took so long; its answers `alone` would take that."""
        if not self.per_token:
            self._begin(tokens, seconds, alone)
            return
        expected = max(alone + self.fixed + tokens * self.per_token, 0.1 * seconds)
        ff, fp, pp = self._variances
        ff += (_DRIFT * (alone + abs(self.fixed) + _FEW * self.per_token)) ** 2
        pp += (_DRIFT * self.per_token) ** 2
        spread = ff + 2 * tokens * fp + tokens**2 * pp + (_NOISE * expected) ** 2
        error = seconds - alone - self.fixed - tokens * self.per_token
        error = copysign(min(abs(error), _BELIEVED * sqrt(spread)), error)
        to_fixed, to_token = (ff + tokens * fp) / spread, (fp + tokens * pp) / spread
        # No step shows that tokens cost nothing, or that answers take less beside them than a tenth.
        self.fixed = max(self.fixed + to_fixed * error, -0.9 * alone)
        self.per_token = max(self.per_token + to_token * error, 0.5 * self.per_token)
        self._variances = (
            ff - to_fixed * (ff + tokens * fp),
            fp - to_fixed * (fp + tokens * pp),
            pp - to_token * (fp + tokens * pp),
        )

    def _begin(self, tokens: int, seconds: float, alone: float) -> None:
        """The first step: all that its answers do not take is its tokens', or half of the step is fixed."""
        self.per_token = max(seconds - alone, _LEAST_SHARE * seconds) / tokens
        unsure = (0.5 * seconds) ** 2
        self._variances = (
            unsure,
            -unsure / tokens,
            unsure / tokens**2 + (_NOISE * self.per_token) ** 2,
        )
