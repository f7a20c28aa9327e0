from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmrun.engine.prefill_cost import Cost, PrefillCost

ALONE = 0.04  # seconds that the answers take
SIZES = [64, 64, 64, 32]


def of_token(machine: Cost, depth: float) -> float:
    """Seconds of one behind so many cells."""
    return machine.per_token + machine.per_cell * depth


def seconds_of(machine: Cost, tokens: int, depth: float) -> float:
    return ALONE + machine.fixed + tokens * of_token(machine, depth)


def shown(cost: PrefillCost, machine: Cost, steps: int, noise: float = 0.0) -> None:
    """Let it see prompts of 3,000 tokens on a machine that takes so long."""
    rng = random.Random(3)
    depth = 0
    for number in range(steps):
        tokens = SIZES[number % len(SIZES)]
        seconds = seconds_of(machine, tokens, depth)
        cost.observe(tokens, tokens, depth, seconds * (1 + noise * rng.uniform(-1, 1)), ALONE)
        depth = (depth + tokens) % 3000


def guessed(cost: PrefillCost, tokens: int, depth: float) -> float:
    assert cost.known is not None
    return seconds_of(cost.known, tokens, depth)


MACHINES = [
    Cost(0.01, 0.003, 3e-6),
    Cost(0.3, 0.003, 1e-7),
    Cost(0.0, 0.0005, 0.0),
    Cost(-0.02, 0.004, 1e-6),
]


def test_cost_before_any_step_is_not_known() -> None:
    assert PrefillCost().known is None


def test_cost_after_one_step_is_all_the_tokens() -> None:
    cost = PrefillCost()
    cost.observe(50, 50, 0, ALONE + 0.1, ALONE)
    assert cost.known is not None
    assert cost.known[:2] == pytest.approx((0.0, 0.002))


@pytest.mark.parametrize("machine", MACHINES)
def test_cost_of_steps_of_two_sizes_is_told_apart(machine: Cost) -> None:
    cost = PrefillCost()
    shown(cost, machine, 120, noise=0.05)
    assert cost.known is not None
    for depth in (500, 2500):
        assert of_token(cost.known, depth) == pytest.approx(of_token(machine, depth), rel=0.35)
        for tokens in (32, 64):
            expected = seconds_of(machine, tokens, depth)
            assert guessed(cost, tokens, depth) == pytest.approx(expected, rel=0.12)


def test_cost_of_a_prompt_that_gets_longer_is_not_taken_for_fixed() -> None:
    """Even where its chunks get smaller meanwhile, so that its steps take as long as ever."""
    machine, cost, depth = Cost(0.01, 0.003, 3e-6), PrefillCost(), 0
    while depth < 2500:
        tokens = int(1.4 / of_token(machine, depth))
        cost.observe(tokens, tokens, depth, seconds_of(machine, tokens, depth), ALONE)
        depth += tokens
    assert cost.known is not None
    assert cost.known.fixed < 0.1
    assert cost.known.per_cell == pytest.approx(3e-6, rel=0.3)


def test_cost_follows_a_machine_that_became_slow() -> None:
    cost = PrefillCost()
    shown(cost, Cost(0.01, 0.001, 1e-6), 20)
    slow = Cost(0.3, 0.003, 1e-6)
    shown(cost, slow, 80)
    assert cost.known is not None
    assert cost.known.fixed == pytest.approx(slow.fixed, rel=0.3)
    assert of_token(cost.known, 1500) == pytest.approx(of_token(slow, 1500), rel=0.4)


def test_cost_believes_a_single_slow_step_little() -> None:
    cost, machine = PrefillCost(), Cost(0.01, 0.002, 1e-6)
    shown(cost, machine, 20)
    cost.observe(64, 64, 1100, 5.0, ALONE)
    assert guessed(cost, 64, 1100) < 1.5 * seconds_of(machine, 64, 1100)


def test_cost_that_was_kept_is_where_it_begins() -> None:
    kept, machine = Cost(0.3, 0.003, 1e-6), Cost(0.01, 0.001, 1e-6)
    cost = PrefillCost(kept)
    assert cost.known == kept
    shown(cost, machine, 40)
    assert guessed(cost, 64, 1500) == pytest.approx(seconds_of(machine, 64, 1500), rel=0.1)


seconds = st.just(0.0) | st.floats(1e-6, 100)  # a clock may stand still between two readings


@given(st.lists(st.tuples(st.integers(1, 512), st.integers(0, 9999), seconds, st.floats(0, 1)), max_size=60))
def test_cost_of_tokens_is_never_negative(steps: list[tuple[int, int, float, float]]) -> None:
    cost = PrefillCost()
    for step in steps:
        cost.observe(step[0], *step)
        if cost.known is not None:
            assert cost.known.per_token > 0
            assert cost.known.per_cell >= 0
            assert cost.known.fixed >= -0.9


def test_deviation_of_large_steps_is_less_after_steps_of_several_sizes_than_of_one() -> None:
    def after(*sizes: int) -> float:
        cost = PrefillCost()
        for tokens in sizes * 4:
            cost.observe(tokens, tokens, 100, 0.02 + 0.001 * tokens, 0.01)
        return cost.deviation(512, 512, 100, 0.01)

    assert after(64, 192) < after(64, 64) < 1


def test_deviation_grows_when_steps_take_what_no_step_should() -> None:
    cost = PrefillCost()
    for _ in range(20):
        cost.observe(64, 64, 100, 0.1, 0.01)
    surest = cost.deviation(512, 512, 100, 0.01)
    for _ in range(2):
        cost.observe(64, 64, 100, 0.5, 0.01)
        assert cost.deviation(512, 512, 100, 0.01) > surest


def test_deviation_before_any_step_is_all() -> None:
    assert PrefillCost().deviation(512, 512, 100, 0.01) == 1


def test_deviation_after_any_number_of_surprises_stays_bounded() -> None:
    cost = PrefillCost()
    for turn in range(400):
        cost.observe(512, 512, 1000, 5.0 if turn % 2 else 0.05, 0.01)
        assert 0.1 < cost.deviation(64, 64, 100, 0.01) < 100
