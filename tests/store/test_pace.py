from __future__ import annotations

from llmrun.store.pace import Pace


def test_delay_without_a_rate_is_none() -> None:
    assert Pace(None).delay(1 << 30, 0.0) == 0.0


def test_delay_keeps_the_rate_over_all_connections() -> None:
    pace = Pace(1000)
    assert pace.delay(500, 10.0) == 0.5
    assert pace.delay(500, 10.0) == 1.0
    assert pace.delay(1000, 10.5) == 1.5


def test_delay_idle_time_is_not_saved_up() -> None:
    pace = Pace(1000)
    pace.delay(1000, 0.0)
    assert pace.delay(1000, 60.0) == 1.0
