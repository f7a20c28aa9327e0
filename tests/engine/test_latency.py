from __future__ import annotations

import random

import numpy as np
import pytest

from llmrun.engine.latency import Latencies


def counted(times: list[float], most: int | None = None) -> Latencies:
    made = Latencies(most)
    for seconds in times:
        made.add(seconds)
    return made


@pytest.mark.parametrize("share", [0.01, 0.5, 0.9, 0.95, 0.99])
def test_percentile_agrees_with_numpy_within_a_bucket(share: float) -> None:
    rng = random.Random(4)
    times = [rng.lognormvariate(-4, 1) for _ in range(5000)]
    exact = float(np.quantile(times, share))
    assert counted(times).percentile(share) == pytest.approx(exact, rel=0.06)


def test_percentile_of_nothing_is_nothing() -> None:
    assert Latencies().percentile(0.5) == 0.0
    assert Latencies().longest == 0.0


def test_percentile_is_never_above_the_longest() -> None:
    one = counted([0.0101])
    assert one.percentile(0.5) <= one.longest == 0.0101
    assert one.percentile(0.5) == pytest.approx(0.0101, rel=0.05)


def test_percentile_of_times_beyond_the_buckets_is_their_edge() -> None:
    assert counted([0.0]).percentile(0.5) == 0.0
    assert 200 < counted([1e6]).percentile(0.5) < 1000


def test_merge_counts_the_times_of_both() -> None:
    both = counted([0.01] * 3)
    both.merge(counted([1.0] * 7))
    assert both.percentile(0.2) == pytest.approx(0.01, rel=0.05)
    assert both.percentile(0.5) == pytest.approx(1.0, rel=0.05)
    assert both.longest == 1.0


def test_merge_beyond_the_bound_lets_old_times_fade() -> None:
    recent = Latencies(most=100)
    recent.merge(counted([1.0] * 100))
    for _ in range(10):
        recent.merge(counted([0.01] * 50))
    assert recent.percentile(0.95) == pytest.approx(0.01, rel=0.05)
    assert recent.longest == 1.0
