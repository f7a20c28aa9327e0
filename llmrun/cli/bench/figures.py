"""What requests took, as figures. Samples in, plain records out; pure. Times in milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

PERCENTILES = (50, 90, 99)


@dataclass(frozen=True)
class Sample:
    """One request as its client saw it. prompt: tokens that were computed, none of them cached. ttft: until
    the first text. gaps: between texts that came one after another. prefill, decode: as the engine says."""

    prompt: int
    completion: int
    ttft_ms: float
    gaps_ms: tuple[float, ...]
    prefill_ms: float
    decode_ms: float


def percentile(values: Sequence[float], share: float) -> float | None:
    """The value below which `share` percent lie, between neighbours by straight line; None of no values."""
    if not values:
        return None
    ordered = sorted(values)
    place = (len(ordered) - 1) * share / 100
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def spread(values: Sequence[float]) -> dict[str, float | None]:
    """The percentiles of some values, as `p50`, `p90`, `p99`."""
    return {f"p{share}": percentile(values, share) for share in PERCENTILES}


def by_length(length: int, samples: Sequence[Sample]) -> dict[str, Any]:
    """Figures of requests that ran alone behind prompts of one length; speeds are medians, in tokens/s."""
    prefill = [_per_second(sample.prompt, sample.prefill_ms) for sample in samples]
    decode = [_per_second(sample.completion - 1, sample.decode_ms) for sample in samples]
    return {
        "prompt": length,
        "prefill_tps": percentile([speed for speed in prefill if speed], 50),
        "decode_tps": percentile([speed for speed in decode if speed], 50),
        **_times(samples),
    }


def by_concurrency(at_once: int, samples: Sequence[Sample], seconds: float) -> dict[str, Any]:
    """Figures of requests of which `at_once` ran together, all of them within `seconds`. `decode_tps` is the
    sum of tokens written a second, prompts included in the time."""
    written = sum(sample.completion for sample in samples)
    return {
        "concurrency": at_once,
        "requests": len(samples),
        "decode_tps": written / seconds if seconds > 0 else None,
        **_times(samples),
    }


def _times(samples: Sequence[Sample]) -> dict[str, Any]:
    return {
        "ttft_ms": spread([sample.ttft_ms for sample in samples]),
        "itl_ms": spread([gap for sample in samples for gap in sample.gaps_ms]),
    }


def _per_second(tokens: int, milliseconds: float) -> float:
    return tokens / milliseconds * 1e3 if milliseconds > 0 and tokens > 0 else 0.0


def of_roofline(speed: float | None, read: int, bandwidth: float | None) -> float | None:
    """The share of the memory's bandwidth that decoding at `speed` tokens/s takes where each token reads
    `read` bytes; None where either is not known."""
    return speed * read / bandwidth if speed and bandwidth else None
