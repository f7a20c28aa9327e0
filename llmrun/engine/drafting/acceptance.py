"""How often guesses come true, by how sure one could be of them. Pure.

Guesses fall into classes, the least sure first. Each class begins with what is usual and follows its newest
outcomes. A guess need not be computed to be judged: the token that comes next says whether it was right.
"""

from __future__ import annotations

from collections.abc import Sequence

_MEMORY = 0.96  # an outcome counts for so much of the next one's weight
_USUAL_WEIGHT = 2.0  # outcomes that the usual rate counts for


class Acceptance:
    """Of one sequence. `usual`: a class's rate before anything is known."""

    def __init__(self, usual: Sequence[float]) -> None:
        self._right = [rate * _USUAL_WEIGHT for rate in usual]
        self._weight = [_USUAL_WEIGHT] * len(usual)
        self.rates = list(usual)

    def note(self, kind: int, right: bool) -> None:
        """A guess of class `kind` came true or did not."""
        self._right[kind] = hits = self._right[kind] * _MEMORY + right
        self._weight[kind] = weight = self._weight[kind] * _MEMORY + 1.0
        self.rates[kind] = hits / weight
