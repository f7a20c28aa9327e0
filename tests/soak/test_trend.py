from __future__ import annotations

import random

from tests.soak.trend import growth

RNG = random.Random(3)


def noisy(count: int, begin: float, slope: float) -> list[float]:
    return [begin + slope * i + RNG.uniform(-2, 2) for i in range(count)]


def test_growth_noise_and_single_peaks_are_none() -> None:
    level = noisy(60, 100, 0)
    assert not growth([*level[:58], 900.0, level[59]], share=0.02, least=0).grows
    assert not growth([*level[:20], 900.0, *level[21:]], share=0.02, least=0).grows


def test_growth_steady_one_is_found_in_noise() -> None:
    assert growth(noisy(60, 100, 0.2), share=0.02, least=1).grows


def test_growth_before_the_work_is_warm_is_none() -> None:
    assert not growth([10, 50, *[100] * 18], share=0.02, least=1).grows


def test_growth_counts_may_not_rise_by_one() -> None:
    assert growth([5, 5, 5, 6, 6, 6], share=0, least=0).grows
    assert growth([0, 0, 1], share=0, least=0).grows
    assert not growth([5, 6, 5, 6, 5, 5], share=0, least=0).grows
