"""Whose turn it is: sequences with different adapters cannot share a step.

llama.cpp applies a set of adapters to a whole decode, and plans the computation anew when the set changes. So
each set that has running sequences gets some steps in a row, in the order of arrival. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence as Several

from llmrun.engine.request import Adapters
from llmrun.engine.sequence import Sequence

LENGTH = 8  # steps in a row


class Turns:
    """Remembers the set whose turn it is, and for how many steps more."""

    def __init__(self) -> None:
        self._set: Adapters = ()
        self._left = 0

    def take(self, running: Several[Sequence]) -> list[Sequence]:
        """Those of `running` that may compute in the next step, in their order."""
        sets = dict.fromkeys(sequence.request.adapters for sequence in running)
        if len(sets) < 2:
            return list(running)
        if self._set not in sets or not self._left:
            self._set, self._left = self._after(list(sets)), LENGTH
        self._left -= 1
        return [sequence for sequence in running if sequence.request.adapters == self._set]

    def _after(self, sets: list[Adapters]) -> Adapters:
        """The set that follows the one whose turn is over; the first where that has gone."""
        place = sets.index(self._set) + 1 if self._set in sets else 0
        return sets[place % len(sets)]
