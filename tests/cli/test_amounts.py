from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from llmrun.cli.amounts import ago, duration, parameters


@pytest.mark.parametrize(
    ("count", "text"), [(134_515_008, "135M"), (7_241_732_096, "7.24B"), (32e9, "32B"), (999, "999")]
)
def test_parameters_three_digits(count: int, text: str) -> None:
    assert parameters(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (-3, "0s"), (59.6, "1m"), (270, "4m 30s"), (7200, "2h"), (90_061, "1d 1h")],
)
def test_duration_two_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("passed", "text"),
    [
        (timedelta(seconds=5), "just now"),
        (timedelta(minutes=1), "1 minute ago"),
        (timedelta(hours=5), "5 hours ago"),
        (timedelta(days=40), "1 month ago"),
    ],
)
def test_ago_largest_unit(passed: timedelta, text: str) -> None:
    now = datetime(2026, 1, 2, tzinfo=timezone.utc)
    assert ago(now - passed, now) == text
