from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmrun.engine.step_cost import StepCost


def test_seconds_nothing_observed_is_zero() -> None:
    assert StepCost(8).seconds(3) == 0


def test_seconds_of_a_count_is_the_median_of_its_newest_steps() -> None:
    cost = StepCost(8)
    for seconds in (9.0, 9.0, 9.0, *[1.0] * 7, 50.0, 2.0):
        cost.observe(3, seconds)
    assert cost.seconds(3) == 1.0


def test_seconds_between_two_counts_lie_on_a_line_and_beyond_rise_gently() -> None:
    cost = StepCost(16)
    cost.observe(2, 10.0)
    cost.observe(6, 30.0)
    assert [cost.seconds(rows) for rows in (1, 2, 3, 4, 6)] == [10, 10, 15, 20, 30]
    assert cost.seconds(8) == pytest.approx(31.0)
    assert cost.seconds(99) == cost.seconds(16)


def test_seconds_keep_the_cliffs_that_were_measured() -> None:
    cost = StepCost(8)
    table = {1: 19, 2: 37, 3: 50, 4: 41, 6: 68, 8: 71}
    for rows, ms in table.items():
        cost.observe(rows, ms)
    assert {rows: cost.seconds(rows) for rows in table} == table


def test_seconds_of_a_count_long_not_seen_are_forgotten() -> None:
    cost = StepCost(8)
    cost.observe(4, 100.0)
    for _ in range(513):
        cost.observe(1, 10.0)
    assert cost.seconds(4) == pytest.approx(11.5)
    cost.observe(4, 12.0)
    assert cost.seconds(4) == 12.0


@given(st.lists(st.tuples(st.integers(1, 40), st.floats(0.001, 10)), min_size=1))
def test_seconds_are_positive_once_anything_was_observed(steps: list[tuple[int, float]]) -> None:
    cost = StepCost(32)
    cost.observe(1, 1.0)
    for rows, seconds in steps:
        cost.observe(rows, seconds)
    assert all(cost.seconds(rows) > 0 for rows in range(1, 40))


def test_step_cost_begins_with_what_was_known() -> None:
    cost = StepCost(8, {1: 0.01, 4: 0.02, 99: 1.0, 0: 1.0})
    assert cost.seconds(1) == 0.01
    assert cost.seconds(4) == 0.02
    assert cost.known == {1: 0.01, 4: 0.02}


def test_step_cost_scaled_keeps_its_shape() -> None:
    cost = StepCost(8)
    cost.observe(1, 0.01)
    cost.observe(4, 0.02)
    cost.scale(0.5)
    assert [cost.seconds(1), cost.seconds(4)] == [0.005, 0.01]
