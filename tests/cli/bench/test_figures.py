from __future__ import annotations

import statistics

import pytest

from llmrun.cli.bench.figures import Sample, by_concurrency, by_length, of_roofline, percentile


def sample(ttft: float = 100.0, *gaps: float, prefill: float = 50.0) -> Sample:
    gaps = gaps or (10.0, 10.0)
    return Sample(20, len(gaps) + 1, ttft, gaps, prefill, sum(gaps))


def test_percentile_agrees_with_the_standard_library() -> None:
    values = [5.0, 1.0, 9.0, 4.0, 7.0, 2.0]
    quantiles = statistics.quantiles(values, n=100, method="inclusive")
    for share in (1, 50, 90, 99):
        assert percentile(values, share) == pytest.approx(quantiles[share - 1])
    assert percentile([3.0], 99) == 3.0
    assert percentile([], 50) is None


def test_by_length_takes_the_median_of_speeds() -> None:
    row = by_length(20, [sample(), sample(200.0, 20.0, 20.0, prefill=10.0), sample(300.0, 40.0, 40.0)])
    assert row["prompt"] == 20
    assert row["prefill_tps"] == pytest.approx(20 / 0.05)
    assert row["decode_tps"] == pytest.approx(2 / 0.04)
    assert row["ttft_ms"]["p50"] == 200.0
    assert row["itl_ms"]["p50"] == 20.0


def test_by_length_of_a_clock_that_stood_still_has_no_speed() -> None:
    still = Sample(20, 2, 1.0, (0.0,), 0.0, 0.0)
    assert (by_length(20, [still])["prefill_tps"], by_length(20, [still])["decode_tps"]) == (None, None)


def test_by_concurrency_counts_all_that_was_written() -> None:
    row = by_concurrency(2, [sample(), sample()], 0.5)
    assert (row["concurrency"], row["requests"], row["decode_tps"]) == (2, 2, 12.0)


def test_of_roofline_is_the_share_of_what_memory_could_read() -> None:
    assert of_roofline(10.0, 2_000_000_000, 40e9) == pytest.approx(0.5)
    assert of_roofline(None, 1, 40e9) is None
    assert of_roofline(10.0, 1, None) is None
