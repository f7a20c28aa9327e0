"""Budgets on made-up machines: what a step takes by its prompt tokens and the cells in use, and when."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmrun.engine.budget import (
    BUSY_STEP_S,
    LEAST_SPEED,
    PrefillBudget,
    scored_shares,
    shares,
)
from llmrun.engine.even_steps import Span
from llmrun.engine.prefill_cost import Cost, PrefillCost
from llmrun.engine.tiles import TILE, tiled_rows

BATCH = 512
ANSWERS = 3
PROMPT = 3000


def behind(depth: int) -> Span:
    """A prompt of which so much is computed."""
    return Span(0, depth, depth + PROMPT)


@dataclass(frozen=True)
class Machine:
    """Seconds of steps: `alone`, with only answers in it (as far as the engine knows), and `fixed` and
    `per_token` with a prompt in it too. Attention takes as long as all else once so many cells are in use
    as `depth`; kernels compute `together` tokens at once. `heads`: their rows are tiled, for two
    threads; 0: they cost one by one."""

    alone: float
    fixed: float
    per_token: float
    depth: int = 1500
    together: int = 1
    noise: float = 0.05
    heads: int = 0

    def attended(self, rows: int) -> float:
        return tiled_rows(max(rows, TILE), self.heads, 2) if self.heads else float(rows)

    def step(self, tokens: int, cells: int, rng: random.Random, answers: int = 0) -> float:
        computed = ceil(tokens / self.together) * self.together
        attended = self.attended(tokens + answers) * (cells + tokens / 2) / self.depth
        seconds = self.fixed + self.per_token * (computed + attended)
        return seconds * (1 + rng.uniform(-self.noise, self.noise))

    def exact(self, tokens: int, done: int) -> float:
        attended = self.attended(tokens + ANSWERS) * (done + tokens / 2) / self.depth
        return self.fixed + self.per_token * (tokens + attended)

    def walk(self, bound: float) -> tuple[float, float]:
        """Seconds of a prompt, and of its longest step, in the most efficient steps within the bound."""
        done, total, longest = 0, 0.0, 0.0
        while done < PROMPT:
            sizes = [rows - ANSWERS for rows in range(TILE, BATCH + 1, TILE)]
            within = [n for n in sizes if self.exact(n, done) <= bound] or sizes[:1]
            tokens = max(within, key=lambda n: n / self.exact(n, done))
            seconds = self.exact(tokens, done) * min(1, (PROMPT - done) / tokens)
            total, longest, done = total + seconds, max(longest, seconds), done + tokens
        return total, longest

    @property
    def shortest(self) -> float:
        """What the longest step can be at the least, if all were known."""
        most = self.walk(1e9)[0] / LEAST_SPEED
        bounds = [BUSY_STEP_S * 1.05**n for n in range(200)]
        return next(
            max(bound, longest) for bound in bounds for total, longest in [self.walk(bound)] if total <= most
        )


MACHINES = {
    # As measured (docs/performance.md): the default model as Q4_0 on two threads and on one.
    "small": Machine(0.020, 0.023, 0.0014),
    "small on one thread": Machine(0.040, 0.045, 0.0028),
    "fast": Machine(0.007, 0.009, 0.0005),
    "large": Machine(0.3, 0.35, 0.03),
    "answers alone are slower": Machine(0.05, 0.03, 0.004),
    # Threads wait for each other, which the answers alone, on one thread, do not show.
    "busy": Machine(0.06, 0.35, 0.003),
    "kernels of eight": Machine(0.020, 0.023, 0.0014, together=8),
    "graphics card": Machine(0.008, 0.010, 0.00005),
    "nine heads in tiles": Machine(0.020, 0.023, 0.0007, depth=700, heads=9),
    "32 heads in tiles": Machine(0.050, 0.055, 0.006, heads=32),
}


def arrive(
    budget: PrefillBudget, machine: Callable[[float], Machine], rng: random.Random, now: float = 0.0
) -> list[tuple[int, float]]:
    """A prompt beside running answers: the tokens and the seconds of its steps."""
    steps: list[tuple[int, float]] = []
    done = 0
    while done < PROMPT:
        current = machine(now + sum(seconds for _, seconds in steps))
        tokens = min(PROMPT - done, budget.tokens(ANSWERS, current.alone, Span(0, done, PROMPT)))
        seconds = current.step(tokens, done, rng, ANSWERS)
        budget.observe(tokens, tokens + ANSWERS, done + tokens / 2, seconds, current.alone)
        steps.append((tokens, seconds))
        done += tokens
    return steps


def idle_seconds(machine: Machine) -> float:
    """Of the same prompt in whole batches."""
    rng = random.Random(0)
    return sum(machine.step(min(BATCH, PROMPT - n), n, rng) for n in range(0, PROMPT, BATCH))


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
@pytest.mark.parametrize("seed", range(3))
def test_budget_bounds_the_prompts_wait_and_the_answers_steps(machine: Machine, seed: int) -> None:
    """The prompt takes at most 1.4 times what it must, and steps are about as short as that lets them be."""
    rng, budget = random.Random(seed), PrefillBudget(BATCH, attended=machine.attended)
    for _ in range(3):  # the answers' own prompts
        budget.observe(40, 41, 20, machine.step(40, 0, rng), machine.alone / 2)
    arrive(budget, lambda _: machine, rng)
    for _ in range(3):
        seconds = [seconds for _, seconds in arrive(budget, lambda _: machine, rng)]
        assert sum(seconds) < 1.4 * idle_seconds(machine)
        assert max(seconds) < 1.4 * machine.shortest


def test_budget_on_a_busy_machine_does_not_spiral_down() -> None:
    """What is fixed in a step is not its tokens' cost: else they get ever fewer, and ever dearer."""
    machine = MACHINES["busy"]
    budget = PrefillBudget(BATCH)
    steps = arrive(budget, lambda _: machine, random.Random(1))
    assert sum(seconds for _, seconds in steps) < 1.5 * idle_seconds(machine)


def test_budget_follows_a_machine_that_becomes_busy_and_quiet_again() -> None:
    quiet, busy = MACHINES["small"], MACHINES["busy"]
    rng, budget = random.Random(2), PrefillBudget(BATCH)
    for _ in range(2):
        arrive(budget, lambda _: quiet, rng)
    arrive(budget, lambda now: quiet if now < 2 else busy, rng)
    among_busy = arrive(budget, lambda _: busy, rng)
    assert sum(seconds for _, seconds in among_busy) < 1.5 * idle_seconds(busy)
    arrive(budget, lambda now: busy if now < 2 else quiet, rng)
    again = arrive(budget, lambda _: quiet, rng)
    assert median(seconds for _, seconds in again) < 2 * quiet.shortest


def test_tokens_before_any_step_are_few_beside_answers_and_else_the_whole_batch() -> None:
    assert PrefillBudget(512).tokens(3, 0.0, behind(0)) + 3 == TILE
    assert PrefillBudget(512).tokens(0, 0.0, behind(0)) == 512


@pytest.mark.parametrize("known", [None, Cost(0.02, 0.0014, 0)])
def test_tokens_beside_answers_of_the_same_burst_are_as_many_as_alone(known: Cost | None) -> None:
    budget = PrefillBudget(512, PrefillCost(known))
    assert budget.tokens(3, 0.02, behind(0), burst=True) + 3 == budget.tokens(0, 0.02, behind(0)) == 512
    assert budget.tokens(3, 0.02, behind(0)) + 3 < 512


def test_tokens_are_never_more_than_the_batch_holds() -> None:
    for known in (None, Cost(0.001, 1e-6, 0), Cost(1.0, 1.0, 0)):
        budget = PrefillBudget(4, PrefillCost(known))
        assert all(1 <= budget.tokens(answers, 0.01, behind(9)) <= 4 for answers in (9, 3, 0))


def test_tokens_without_answers_are_the_most_of_a_second_or_what_is_efficient() -> None:
    assert PrefillBudget(512, PrefillCost(Cost(0.01, 0.004, 0))).tokens(0, 0.0, behind(0)) == 192
    slow = PrefillBudget(512, PrefillCost(Cost(4.0, 0.05, 0))).tokens(0, 0.0, behind(0))
    speed, wanted = (n / (4.0 + n * 0.05) for n in (slow, 512))
    assert speed >= LEAST_SPEED * wanted > (slow - TILE) / (4.0 + (slow - TILE) * 0.05)


@pytest.mark.parametrize("answers", [0, 3, 8])
def test_tokens_and_answers_together_are_whole_tiles(answers: int) -> None:
    budget = PrefillBudget(512, PrefillCost(Cost(0.02, 0.0014, 1e-6)))
    assert all(
        (budget.tokens(answers, 0.02, behind(depth)) + answers) % TILE == 0 for depth in range(0, 3000, 500)
    )


@given(
    st.floats(0, 1),
    st.builds(Cost, st.floats(-0.5, 1), st.floats(1e-6, 1), st.floats(0, 1e-3)),
    st.integers(0, 100),
    st.integers(0, 10_000),
)
def test_tokens_always_move_a_prompt_on(alone: float, known: Cost, answers: int, depth: int) -> None:
    budget = PrefillBudget(512, PrefillCost(known))
    chunks = [budget.tokens(answers, alone, behind(depth)) for _ in range(5)]
    assert all(1 <= tokens <= 512 and tokens + answers >= TILE for tokens in chunks)


def test_shares_short_prompt_behind_a_long_one_is_computed_at_once() -> None:
    assert shares([3000, 40], 128) == [88, 40]


def test_shares_oldest_gets_half_however_many_short_ones_come() -> None:
    assert shares([3000, 60, 60, 60], 128) == [64, 60, 4, 0]


def test_shares_of_one_prompt_or_none() -> None:
    assert shares([50], 128) == [50]
    assert shares([500], 128) == [128]
    assert shares([], 128) == []
    assert shares([5, 5], 0) == [0, 0]


@given(st.lists(st.integers(1, 300), max_size=8), st.integers(-5, 500))
def test_shares_spend_the_budget_where_there_is_need(pending: list[int], tokens: int) -> None:
    given_out = shares(pending, tokens)
    assert sum(given_out) == min(sum(pending), max(0, tokens))
    assert all(0 <= one <= need for one, need in zip(given_out, pending, strict=True))


@pytest.mark.parametrize(
    ("prompts", "tokens", "wanted"),
    [
        ([(20, False)], 16, [16]),
        ([(20, True)], 16, [6]),
        ([(20, True), (5, False)], 16, [6, 5]),
        ([(20, True), (20, True)], 16, [6, 0]),
        ([(2, True), (20, True)], 16, [2, 4]),
        ([(20, True), (20, True)], 4, [4, 0]),
        ([], 16, []),
    ],
)
def test_scored_shares_are_bounded_together(
    prompts: list[tuple[int, bool]], tokens: int, wanted: list[int]
) -> None:
    assert scored_shares(prompts, tokens, scored_rows=6) == wanted
