"""The bound on a prompt's steps: how short they can be, and that the prompt does not pay for it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmrun.engine.even_steps import Span, StepSizes, shortest_bound

SIZES = (61, 125, 253, 509)


def sizes(fixed: float, per_token: float, per_cell: float) -> StepSizes:
    new = np.array(SIZES, float)
    return StepSizes(new, fixed + new * per_token, new * per_cell)


def seconds(times: StepSizes, span: Span, bound: float) -> tuple[float, float]:
    """Of the whole prompt in steps within `bound`, and of the longest of them."""
    done, total, longest = span.start, 0.0, 0.0
    while done < span.end:
        place = int(times.best(done, bound))
        took = float(times.at(done)[place])
        total += took * min(1.0, (span.end - done) / SIZES[place])
        done, longest = done + SIZES[place], max(longest, took)
    return total, longest


def test_best_is_the_most_efficient_within_the_bound_and_else_the_quickest() -> None:
    times = sizes(0.1, 0.001, 0.0)  # 0.161, 0.225, 0.353, 0.609 seconds
    assert [times.best(0, bound) for bound in (1.0, 0.4, 0.3, 0.2, 0.1)] == [3, 2, 1, 0, 0]


def test_best_of_many_depths_is_that_of_each() -> None:
    times = sizes(0.1, 0.001, 1e-6)
    depths = [0.0, 500.0, 1500.0, 4000.0]
    assert times.best(np.array(depths)[:, None], 0.4).tolist() == [times.best(depth, 0.4) for depth in depths]


def test_best_of_sizes_that_waste_is_not_the_largest() -> None:
    assert StepSizes(np.array([64.0, 128.0]), np.array([0.1, 0.3]), np.zeros(2)).best(0, 1.0) == 0


def test_bound_lets_steps_be_long_at_the_start_and_short_at_the_end() -> None:
    times, span = sizes(0.1, 0.001, 1e-6), Span(0, 0, 3000)
    bound = shortest_bound(times, span, 0.81)
    assert [SIZES[times.best(done, bound)] for done in (0, 1000, 2900)] == [253, 125, 61]


def test_bound_is_that_of_the_whole_prompt_however_much_is_done() -> None:
    times = sizes(0.05, 0.001, 1e-6)
    assert len({shortest_bound(times, Span(200, done, 3000), 0.81) for done in (200, 1500, 2999)}) == 1


@pytest.mark.parametrize("span", [Span(0, 0, 0), Span(0, 0, 1), Span(5, 7, 7)])
def test_bound_of_next_to_nothing_is_found(span: Span) -> None:
    assert 0 < shortest_bound(sizes(0.05, 0.001, 1e-6), span, 0.81) < 1


@given(
    st.floats(0, 1),
    st.floats(1e-5, 0.05),
    st.floats(0, 1e-5),
    st.integers(2000, 20_000),
    st.floats(0.7, 0.95),
)
def test_bound_costs_the_prompt_no_more_than_its_share(
    fixed: float, per_token: float, per_cell: float, end: int, share: float
) -> None:
    times, span = sizes(fixed, per_token, per_cell), Span(0, 0, end)
    bound = shortest_bound(times, span, share)
    total, longest = seconds(times, span, bound)
    best, unbound = seconds(times, span, float("inf"))
    assert total <= 1.2 * best / share  # the bound is found at a few places of the prompt
    assert longest <= unbound * (1 + 1e-9)
