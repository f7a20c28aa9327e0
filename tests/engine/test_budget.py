from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmrun.engine.budget import BUSY_STEP_S, LEAST, PrefillBudget, scored_shares, shares


def test_tokens_before_any_step_is_the_whole_batch() -> None:
    assert PrefillBudget(512).tokens(busy=True) == 512


def test_tokens_beside_answers_keeps_the_step_short() -> None:
    budget = PrefillBudget(512)
    budget.observe(512, 1.0)
    assert budget.tokens(busy=True) == int(BUSY_STEP_S * 512)
    assert budget.tokens(busy=False) == 512


def test_tokens_on_a_very_slow_machine_still_moves_on() -> None:
    budget = PrefillBudget(512)
    budget.observe(512, 512.0)
    assert budget.tokens(busy=True) == LEAST


def test_tokens_beside_slow_answers_take_as_long_as_they_do() -> None:
    """What the answers of a step cost is not the prompt's: else its share shrinks with every step."""
    budget = PrefillBudget(512)
    for _ in range(20):
        tokens = min(512, budget.tokens(busy=True, answers=0.2))
        budget.observe(tokens, 0.2 + tokens * 0.004, answers=0.2)
    assert budget.tokens(busy=True, answers=0.2) == 50


def test_observe_decode_steps_teach_nothing() -> None:
    budget = PrefillBudget(512)
    budget.observe(1, 10.0)
    assert budget.tokens(busy=True) == 512


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
