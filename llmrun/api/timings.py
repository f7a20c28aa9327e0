"""How long an answer took, under the names that llama-server's clients read."""

from __future__ import annotations

from llmrun.api.oneline import Json
from llmrun.types import Event, Pace, Progress, Timings, Usage


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


class TimingsSoFar:
    """The object `timings` of a stream's parts, of each answer to each request, while they are made."""

    def __init__(self) -> None:
        self._prompts: dict[int, Progress] = {}
        self._answers: dict[tuple[int, int], Pace] = {}

    def take(self, request: int, event: Event) -> None:
        """Take the next event of a request; most say nothing of times."""
        if isinstance(event, Progress):
            self._prompts[request] = event
        elif isinstance(event, Pace):
            self._answers[request, event.index] = event

    def of(self, request: int, index: int) -> Json:
        """llama-server's share of `timings`, as far as an answer is."""
        prompt = self._prompts.get(request, _NO_PROMPT)
        pace = self._answers.get((request, index), _NO_PACE)
        usage = Usage(prompt=prompt.processed, completion=pace.tokens, cached=prompt.cached)
        return speeds(usage, prompt.elapsed_ms, pace.elapsed_ms)


_NO_PROMPT = Progress(0, 0, 0)
_NO_PACE = Pace(0, 0, 0.0)


def _each(total: float, count: float) -> float:
    return total / count if count else 0.0


def prompt_progress(processed: int, total: int, cached: int, elapsed_ms: float) -> Json:
    """The object `prompt_progress` of a stream whose prompt is being computed."""
    return {"total": total, "cache": cached, "processed": processed, "time_ms": elapsed_ms}
