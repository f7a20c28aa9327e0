"""How many prompt tokens one step may compute beside running answers.

A long prompt wants large steps, for part of each step's time is spent whatever its tokens are; the answers
want short ones, for each gets one token a step. Both are bounds, and the first is the stronger one:

- The prompt is computed at `LEAST_SPEED` or more of the speed that a step of the whole batch has, answers
  included. So its time to first token is at most a quarter longer than it has to be.
- As long as that leaves a choice, a step takes `BUSY_STEP_S`: the inter-token latency of the answers while a
  prompt arrives.

What is fixed and what a token costs is followed by `PrefillCost`. Steps of one size would not tell the two
apart, so each fourth is half as large, or half as large again where half would be less than a tile.

No step has fewer rows than `TILE`, answers included: llama.cpp's flash attention on a CPU takes so many rows
at once, and computes those of a smaller step one by one, which takes about eight times as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from llmrun.engine.prefill_cost import PrefillCost

BUSY_STEP_S = 0.1
# A step without answers bounds how long a new or cancelled request waits for its turn.
IDLE_STEP_S = 1.0
LEAST_SPEED = 0.85
# Tokens of the first step beside answers, while nothing is known.
FIRST = 64
_PROBE = 4  # each so many steps one is half as large
TILE = 64  # GGML_FA_TILE_Q
_TOGETHER = 8  # tokens that other kernels compute at once: some of them take as long


class PrefillBudget:
    """The prompt tokens of the next step, at most `most`, by what `cost` has learnt."""

    def __init__(self, most: int, cost: PrefillCost | None = None) -> None:
        self._most = most
        self.cost = cost or PrefillCost()
        self._steps = 0

    def tokens(self, answers: int, alone: float, depth: int) -> int:
        """Of the next step. `answers` are decoded in it, which would take `alone` seconds. `depth`: the
        prompt's tokens that are computed already."""
        known = self.cost.known
        if known is None:
            return min(FIRST, self._most) if answers else self._most
        fixed, per_token = max(alone + known.fixed, 0.0), known.token(depth)
        quick = ((BUSY_STEP_S if answers else IDLE_STEP_S) - fixed) / per_token
        tokens = max(quick, self._efficient(fixed, per_token), TILE - answers, 1.0)
        self._steps += 1
        if answers and self._steps % _PROBE == 0:
            tokens *= 0.5 if tokens / 2 + answers >= TILE else 1.5
        return int(min(self._most, ceil(tokens / _TOGETHER) * _TOGETHER))

    def _efficient(self, fixed: float, per_token: float) -> float:
        """The fewest tokens that are computed at `LEAST_SPEED` of the whole batch's speed."""
        wanted = LEAST_SPEED * self._most / (fixed + self._most * per_token)  # tokens a second
        return wanted * fixed / (1 - wanted * per_token)


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
