"""Rounds at two servers, and their figures."""

from __future__ import annotations

import asyncio

import pytest
from comparing import Comparison, compare
from workloads import Figures, higher, lower


def test_times_where_lower_is_better_divides_the_peers_by_ours() -> None:
    found = Comparison("w", "TTFT s", "peer", "lower", ours=[1.0, 2.0, 1.0], theirs=[4.0, 4.0, 3.0])
    assert found.times == 3.0


def test_times_of_a_machine_that_slows_down_is_taken_round_by_round() -> None:
    found = Comparison("w", "tokens/s", "peer", "higher", ours=[100, 50, 10], theirs=[50, 25, 5])
    assert found.times == 2.0


def test_compare_takes_turns_and_changes_who_is_first() -> None:
    asked: list[str] = []

    async def workload(side: str) -> Figures:
        asked.append(side)
        return {"speed": higher(len(asked)), "wait": lower(1.0)}

    speed, wait = asyncio.run(compare("w", workload, "ours", "peer", peer="p", rounds=2))
    assert asked == ["ours", "peer", "peer", "ours"]
    assert (speed.ours, speed.theirs) == ([1, 4], [2, 3])
    assert (wait.figure, wait.better) == ("wait", "lower")


@pytest.mark.parametrize(("values", "times"), [(([2.0], [1.0]), 2.0), (([3.0, 1.0], [1.0, 1.0]), 2.0)])
def test_times_is_the_median(values: tuple[list[float], list[float]], times: float) -> None:
    assert Comparison("w", "f", "p", "higher", *values).times == times
