from __future__ import annotations

from llmrun.engine.budget import BUSY_STEP_S, LEAST, PrefillBudget


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


def test_observe_decode_steps_teach_nothing() -> None:
    budget = PrefillBudget(512)
    budget.observe(1, 10.0)
    assert budget.tokens(busy=True) == 512
