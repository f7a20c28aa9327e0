"""What a drafter says: tokens that may come next, and how sure it is of them."""

from __future__ import annotations

from collections.abc import Sequence as Many
from typing import NamedTuple, Protocol

from llmrun.engine.sequence import Sequence


class Guess(NamedTuple):
    """`chances[i]`: how likely the first i + 1 tokens are all right; they never rise."""

    tokens: list[int]
    chances: list[float]


NO_GUESS = Guess([], [])


class Drafter(Protocol):
    """Guesses how answers go on. Used by the engine's thread."""

    def guesses(self, sequences: Many[Sequence], most: int, seconds: float, /) -> list[Guess]:
        """For each sequence at most `most` tokens; none where it knows nothing. Sequences may have grown
        by any tokens since they were last seen. `seconds`: what a step without guesses takes; 0: unknown."""

    def forget(self, sequence: Sequence) -> None:
        """The sequence has ended; one that was never seen is ignored."""
