"""How many guesses are worth their rows. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from llmrun.engine.step_cost import StepCost


def lengths(
    chances: Sequence[Sequence[float]], *, rows: int, answers: int, room: int, cost: StepCost
) -> list[int]:
    """How many guesses of each answer the next step should compute, at most `room` in all.

    A step of `rows` rows gives each of its `answers` a token. A guess makes it a row longer and gives a token
    more with its chance (that of all guesses before it included). So guesses are taken by their chances,
    likeliest first, as far as they raise the tokens expected per second. That weighs answers against each
    other, and ends drafting by itself where rows are dear: in a full batch, or where guesses miss. `cost`
    knows what `rows` rows take.
    """
    ranked = sorted(((-chance, i) for i, row in enumerate(chances) for chance in row))
    best, taken = answers / cost.seconds(rows), 0
    tokens = float(answers)
    for count, (chance, _) in enumerate(islice(ranked, max(0, room)), 1):
        tokens -= chance
        speed = tokens / cost.seconds(rows + count)
        if speed > best:
            best, taken = speed, count
    chosen = [0] * len(chances)
    for _, i in ranked[:taken]:
        chosen[i] += 1
    return chosen
