"""How long an answer took, under the names that llama-server's clients read."""

from __future__ import annotations

from llmrun.api.oneline import Json
from llmrun.types import Timings, Usage


def llama_timings(usage: Usage, timings: Timings) -> Json:
    """The object `timings`: llama-server's counts and speeds, and ours besides, all in milliseconds."""
    ours = {name: getattr(timings, name) for name in Timings.__struct_fields__}
    return {**speeds(usage, timings.prefill_ms, timings.decode_ms), **ours}


def speeds(usage: Usage, prompt_ms: float, predicted_ms: float) -> Json:
    """llama-server's share of `timings`. A prompt token that was cached took no time, so it counts apart.
    Drafts are counted where there were any, as there."""
    computed = usage.prompt - usage.cached
    return {
        "cache_n": usage.cached,
        "prompt_n": computed,
        "prompt_ms": prompt_ms,
        "prompt_per_token_ms": _each(prompt_ms, computed),
        "prompt_per_second": _each(computed * 1e3, prompt_ms),
        "predicted_n": usage.completion,
        "predicted_ms": predicted_ms,
        "predicted_per_token_ms": _each(predicted_ms, usage.completion),
        "predicted_per_second": _each(usage.completion * 1e3, predicted_ms),
        **({"draft_n": usage.drafted, "draft_n_accepted": usage.accepted} if usage.drafted else {}),
    }


def _each(total: float, count: float) -> float:
    return total / count if count else 0.0


def prompt_progress(processed: int, total: int, cached: int, elapsed_ms: float) -> Json:
    """The object `prompt_progress` of a stream whose prompt is being computed."""
    return {"total": total, "cache": cached, "processed": processed, "time_ms": elapsed_ms}
