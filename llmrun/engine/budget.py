"""How many prompt tokens one step may compute beside running answers.

A long prompt wants large steps, for part of each step's time is spent whatever its tokens are; the answers
want short ones, for each gets one token a step. Both are bounds, and the first is the stronger one:

- The prompt is computed at about `LEAST_SPEED` of the speed that the best of all steps have, answers
  included, or more. What the answers' rows take comes on top.
- As long as that leaves a choice, a step takes `BUSY_STEP_S`: the inter-token latency of the answers while a
  prompt arrives. Where it does not, all steps of the prompt have one bound: see `llmrun.engine.even_steps`.

Answers that have just begun, beside prompts that had come before they did, are one burst with them
(`llmrun.engine.rows.is_burst`): the prompts' steps are as large as without answers, which wait for the
others' first tokens as those waited for theirs.

What is fixed and what a token costs is followed by `PrefillCost`. Steps of one size would not tell the two
apart: where it is too unsure of what a large step takes, each second one is half as large, or twice where
half would be less than a tile.

A step's rows, answers included, are whole tiles: see `llmrun.engine.tiles`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from llmrun.engine.even_steps import Span, StepSizes, shortest_bound
from llmrun.engine.prefill_cost import Cost, PrefillCost
from llmrun.engine.tiles import TILE

BUSY_STEP_S = 0.1
# A step without answers bounds how long a new or cancelled request waits for its turn.
IDLE_STEP_S = 1.0
LEAST_SPEED = 0.86
BURST_S = 1.0
"""From an answer's first token, within which it waits for prompts that had come before that."""
_MOST_DEVIATION = 0.12  # of the seconds of the largest step, as a share


class PrefillBudget:
    """The prompt tokens of the next step, at most `most`, by what `cost` has learnt. `attended`: the rows'
    worth of attention that a step of so many rows computes."""

    def __init__(
        self, most: int, cost: PrefillCost | None = None, attended: Callable[[int], float] = float
    ) -> None:
        self._most = most
        self.cost = cost or PrefillCost()
        self._attended = attended
        self._sizes: list[int] = [*range(TILE, most, TILE), most]
        self._varied = False

    def tokens(self, answers: int, alone: float, prompt: Span, *, burst: bool = False) -> int:
        """Of the next step; `prompt`: the longest of those that it is of. `answers` are decoded in it, which
        would take `alone` seconds; `burst`: they and the prompts came together."""
        known, paced = self.cost.known, answers > 0 and not burst
        if known is None:
            return max(1, (min(TILE, self._most) if paced else self._most) - answers)
        sizes = [rows for rows in self._sizes if rows > answers] or [self._most + answers]
        times = self._times(known, sizes, answers, alone)
        bound = max(BUSY_STEP_S if paced else IDLE_STEP_S, shortest_bound(times, prompt, LEAST_SPEED))
        place = int(times.best(prompt.done, bound))
        if paced and self._vary(prompt.done, alone):
            place = (place - 1) // 2 if place else min(1, len(sizes) - 1)
        return sizes[place] - answers

    def _times(self, known: Cost, sizes: list[int], answers: int, alone: float) -> StepSizes:
        new = np.array(sizes, float) - answers
        attended = np.array([self._attended(rows) for rows in sizes])
        return StepSizes(
            new, max(alone + known.fixed, 0.0) + new * known.per_token, attended * known.per_cell
        )

    def _vary(self, depth: int, alone: float) -> bool:
        """Whether the next step should have another size, to tell what is fixed from what tokens cost."""
        deviation = self.cost.deviation(self._most, self._attended(self._most), depth, alone)
        self._varied = deviation > _MOST_DEVIATION and not self._varied
        return self._varied

    def observe(self, tokens: int, rows: int, depth: float, seconds: float, alone: float) -> None:
        """A step of so many rows took so long; of these so many were a prompt's, each behind `depth` cells on
        average, and the others would take `alone`."""
        self.cost.observe(tokens, self._attended(rows), depth, seconds, alone)


def shares(pending: Sequence[int], tokens: int) -> list[int]:
    """How many of a step's prefill tokens each prompt gets; `pending`: what they need, oldest first.

    Half is the oldest's, so that no prompt waits for ever; the rest goes to the shortest first, so that a
    short one does not wait for a long one.
    """
    given = [0] * len(pending)
    if not pending or tokens <= 0:
        return given
    given[0] = min(pending[0], -(-tokens // 2))
    left = tokens - given[0]
    for place in sorted(range(len(pending)), key=pending.__getitem__):
        more = min(pending[place] - given[place], left)
        given[place] += more
        left -= more
    return given


def scored_shares(prompts: Sequence[tuple[int, bool]], tokens: int, scored_rows: int) -> list[int]:
    """`shares` for prompts of so many pending tokens, some of which are scored: these get `scored_rows`
    tokens together, oldest first."""
    given = shares([min(n, scored_rows) if scored else n for n, scored in prompts], tokens)
    left = scored_rows
    for place, (_, scored) in enumerate(prompts):
        if scored:
            given[place] = min(given[place], left)
            left -= given[place]
    return given
