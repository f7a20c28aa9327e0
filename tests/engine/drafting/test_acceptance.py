from __future__ import annotations

import pytest

from llmrun.engine.drafting.acceptance import Acceptance


def test_rates_begin_with_what_is_usual() -> None:
    assert Acceptance([0.3, 0.9]).rates == [0.3, 0.9]


@pytest.mark.parametrize("right", [True, False])
def test_rates_follow_the_outcomes_of_their_class_alone(right: bool) -> None:
    acceptance = Acceptance([0.5, 0.5])
    for _ in range(200):
        acceptance.note(1, right)
    assert acceptance.rates == [0.5, pytest.approx(float(right), abs=0.01)]


def test_rates_forget_what_was_long_ago() -> None:
    acceptance = Acceptance([0.5])
    for right in [True] * 200 + [False] * 60:
        acceptance.note(0, right)
    assert acceptance.rates[0] < 0.12
