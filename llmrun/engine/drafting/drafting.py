"""Which guesses the next step computes."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Many

from llmrun.engine.drafting.guess import Drafter, Guess
from llmrun.engine.drafting.lengths import lengths
from llmrun.engine.rows import Row
from llmrun.engine.sequence import Sequence
from llmrun.engine.step_cost import StepCost

LONGEST = 127  # guesses of one answer in one step
# A guess this likely is not asked of the next drafter, which costs more.
_SURE = 0.6


class Drafting:
    """Asks the drafters, the cheapest first, and takes as many of their guesses as pay. `cost` is what steps
    are known to take, `ctx` the most tokens of an answer and its prompt."""

    def __init__(self, drafters: Many[Drafter], cost: StepCost, ctx: int) -> None:
        self._drafters = drafters
        self._cost = cost
        self._ctx = ctx

    def add(self, rows: Many[Row], room: Callable[[int], int]) -> None:
        """Give drafts to the answers in `rows` that are sampled from. `room`: of so many rows, guesses
        included, how many the step can have.

        Beside a prompt there are none: guesses are nearly free where a step has few rows, and there each
        takes as long as a token of the prompt, which waits, as do all the answers.
        """
        if any(not row.sequence.decoding for row in rows):
            return
        answering = [
            row.sequence
            for row in rows
            if row.output and row.sequence.decoding and row.sequence.request.drafts
        ]
        count = sum(row.length for row in rows)
        if not self._drafters or not answering or count >= self._cost.most:
            return
        guesses = self._guesses(answering, self._cost.seconds(count))
        chances = [
            guess.chances[: self._useful(sequence)]
            for guess, sequence in zip(guesses, answering, strict=True)
        ]
        if not any(chances) or not self._cost.seconds(count):
            return
        wanted = min(count + sum(map(len, chances)), self._cost.most)
        chosen = lengths(
            chances, rows=count, answers=len(answering), room=room(wanted) - count, cost=self._cost
        )
        for sequence, guess, length in zip(answering, guesses, chosen, strict=True):
            sequence.draft = tuple(guess.tokens[:length])

    def forget(self, sequence: Sequence) -> None:
        """The sequence has ended."""
        for drafter in self._drafters:
            drafter.forget(sequence)

    def _guesses(self, answering: list[Sequence], seconds: float) -> list[Guess]:
        first, *others = self._drafters
        guesses = first.guesses(answering, LONGEST, seconds)
        for drafter in others:
            unsure = [i for i, guess in enumerate(guesses) if not guess.chances or guess.chances[0] < _SURE]
            if unsure:
                better = drafter.guesses([answering[i] for i in unsure], LONGEST, seconds)
                for i, guess in zip(unsure, better, strict=True):
                    if guess.tokens:
                        guesses[i] = guess
        return guesses

    def _useful(self, sequence: Sequence) -> int:
        """How many guesses could become part of the answer: the last token is never computed."""
        room, limit = self._ctx - sequence.length, sequence.request.max_tokens
        left = room if limit is None else min(room, limit - sequence.generated)
        return min(LONGEST, max(0, left - 1))
