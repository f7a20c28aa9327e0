from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmrun.engine.prefill_cost import PrefillCost

ALONE = 0.04  # seconds that the answers take


def shown(cost: PrefillCost, fixed: float, per_token: float, sizes: list[int], noise: float = 0.0) -> None:
    """Let it see steps of these sizes on a machine that takes so long."""
    rng = random.Random(3)
    for tokens in sizes:
        seconds = ALONE + fixed + tokens * per_token
        cost.observe(tokens, seconds * (1 + noise * rng.uniform(-1, 1)), ALONE)


def test_cost_before_any_step_is_not_known() -> None:
    assert PrefillCost().known is None


def test_cost_after_one_step_is_all_the_tokens() -> None:
    cost = PrefillCost()
    cost.observe(50, ALONE + 0.1, ALONE)
    assert cost.known == (0.0, pytest.approx(0.002))


@pytest.mark.parametrize(("fixed", "per_token"), [(0.01, 0.003), (0.3, 0.003), (0.0, 0.0005), (-0.02, 0.004)])
def test_cost_of_steps_of_two_sizes_is_told_apart(fixed: float, per_token: float) -> None:
    cost = PrefillCost()
    shown(cost, fixed, per_token, [64, 64, 64, 32] * 15, noise=0.05)
    assert cost.per_token == pytest.approx(per_token, rel=0.3)
    for tokens in (32, 64):
        expected = ALONE + fixed + tokens * per_token
        assert ALONE + cost.fixed + tokens * cost.per_token == pytest.approx(expected, rel=0.1)


def test_cost_follows_a_machine_that_became_slow() -> None:
    cost = PrefillCost()
    shown(cost, 0.01, 0.001, [100, 100, 100, 50] * 5)
    shown(cost, 0.3, 0.003, [100, 100, 100, 50] * 20)
    assert cost.fixed == pytest.approx(0.3, rel=0.3)
    assert cost.per_token == pytest.approx(0.003, rel=0.3)


def test_cost_believes_a_single_slow_step_little() -> None:
    cost = PrefillCost()
    shown(cost, 0.01, 0.002, [64, 64, 64, 32] * 5)
    cost.observe(64, 5.0, ALONE)
    assert ALONE + cost.fixed + 64 * cost.per_token < 1.5 * (ALONE + 0.01 + 64 * 0.002)


def test_cost_that_was_kept_is_where_it_begins() -> None:
    cost = PrefillCost(0.3, 0.003)
    assert cost.known == (0.3, 0.003)
    shown(cost, 0.01, 0.001, [100, 100, 100, 50] * 20)
    assert cost.per_token == pytest.approx(0.001, rel=0.3)


seconds = st.just(0.0) | st.floats(1e-6, 100)  # a clock may stand still between two readings


@given(st.lists(st.tuples(st.integers(1, 512), seconds, st.floats(0, 1)), max_size=60))
def test_cost_of_tokens_is_never_negative(steps: list[tuple[int, float, float]]) -> None:
    cost = PrefillCost()
    for tokens, seconds, alone in steps:
        cost.observe(tokens, seconds, alone)
        assert cost.per_token >= 0
        assert cost.fixed >= -0.9
