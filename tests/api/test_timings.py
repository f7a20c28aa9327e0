from __future__ import annotations

from llmrun.api.timings import llama_timings, prompt_progress
from llmrun.types import Timings, Usage


def test_timings_have_llama_servers_counts_and_speeds_and_ours() -> None:
    took = Timings(
        queue_ms=1.0, prefill_ms=20.0, decode_ms=30.0, ttft_ms=21.0, itl_ms=15.0, load_ms=0.5,
        itl_p50_ms=14.0, itl_p95_ms=19.0, itl_max_ms=20.0,
    )  # fmt: skip
    assert llama_timings(Usage(prompt=6, completion=3, cached=2), took) == {
        "cache_n": 2,
        "prompt_n": 4,
        "prompt_ms": 20.0,
        "prompt_per_token_ms": 5.0,
        "prompt_per_second": 200.0,
        "predicted_n": 3,
        "predicted_ms": 30.0,
        "predicted_per_token_ms": 10.0,
        "predicted_per_second": 100.0,
        "queue_ms": 1.0,
        "prefill_ms": 20.0,
        "decode_ms": 30.0,
        "ttft_ms": 21.0,
        "itl_ms": 15.0,
        "load_ms": 0.5,
        "itl_p50_ms": 14.0,
        "itl_p95_ms": 19.0,
        "itl_max_ms": 20.0,
    }


def test_timings_count_drafts_where_there_were_any() -> None:
    none = Timings(queue_ms=0.0, prefill_ms=0.0, decode_ms=0.0, ttft_ms=0.0, itl_ms=0.0)
    timings = llama_timings(Usage(prompt=6, completion=3, drafted=5, accepted=2), none)
    assert (timings["draft_n"], timings["draft_n_accepted"]) == (5, 2)


def test_timings_of_nothing_are_nothing() -> None:
    none = Timings(queue_ms=0.0, prefill_ms=0.0, decode_ms=0.0, ttft_ms=0.0, itl_ms=0.0)
    assert not any(llama_timings(Usage(prompt=0, completion=0), none).values())


def test_prompt_progress_golden() -> None:
    assert prompt_progress(3, 9, 1, 2.5) == {"total": 9, "cache": 1, "processed": 3, "time_ms": 2.5}
