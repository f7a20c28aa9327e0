from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmrun.access.limiter import RateLimiter, day_of, until_tomorrow


def test_take_lets_a_minutes_worth_pass_and_says_how_long_to_wait() -> None:
    limiter = RateLimiter()
    assert [limiter.take("a", 3, 0.0) for _ in range(3)] == [0.0, 0.0, 0.0]
    assert limiter.take("a", 3, 0.0) == pytest.approx(20.0)
    assert limiter.take("a", 3, 19.0) == pytest.approx(1.0)
    assert limiter.take("a", 3, 20.0) == 0.0


def test_take_keys_do_not_share() -> None:
    limiter = RateLimiter()
    assert limiter.take("a", 1, 0.0) == 0.0
    assert limiter.take("a", 1, 0.0) > 0
    assert limiter.take("b", 1, 0.0) == 0.0


@given(st.integers(1, 20), st.lists(st.floats(0, 5), max_size=200))
def test_take_never_lets_more_pass_than_a_burst_and_the_rate(per_minute: int, gaps: list[float]) -> None:
    limiter, now, passed = RateLimiter(), 0.0, 0
    for gap in gaps:
        now += gap
        wait = limiter.take("a", per_minute, now)
        passed += wait == 0.0
        assert 0.0 <= wait <= 60.0 / per_minute + 1e-9
    assert passed <= per_minute + now * per_minute / 60 + 1e-6


def test_days_end_at_midnight_utc() -> None:
    assert (day_of(86399.0), day_of(86400.0)) == (0, 1)
    assert until_tomorrow(86399.0) == 1.0
    assert until_tomorrow(86400.0) == 86400.0
