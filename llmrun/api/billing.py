"""What one request uses of its key's tokens while it runs, and how it ends where they are over. Pure.

Requests that run at the same time share a day's tokens: each token counts when it comes, so that the last one
ends all of them. Every moment is given, in seconds of any one clock.
"""

from __future__ import annotations

from llmrun.types import (
    CallArguments,
    Event,
    Finished,
    Reasoning,
    Started,
    Stopped,
    Terminal,
    Text,
    Timings,
    Usage,
)


class Bill:
    """One request. One that ends early has no count from the engine: then its prompt counts, and a token for
    every piece that came."""

    def __init__(self, answers: int, now: float) -> None:
        self.prompt = self.completion = 0
        self.over = False  # whether it has ended by itself
        self._running = set(range(answers))
        self._began = self._computed = self._first = now

    def note(self, event: Event, now: float) -> tuple[int, int]:
        """The tokens of prompt and answers that `event` adds to what was counted so far."""
        before = self.prompt, self.completion
        if isinstance(event, Started):
            self.prompt, self._computed = event.prompt_tokens, now
        elif isinstance(event, Text | Reasoning | CallArguments):
            self._first = self._first if self.completion else now
            self.completion += 1
        elif isinstance(event, Stopped):
            self._running.discard(event.index)
        elif isinstance(event, Finished):
            self.prompt, self.completion = event.usage.prompt, event.usage.completion
        self.over = self.over or isinstance(event, Terminal)
        return self.prompt - before[0], self.completion - before[1]

    def cut(self, now: float) -> list[Event]:
        """The last events of a request that ends here with what it has."""
        decode = now - self._first
        timings = Timings(
            queue_ms=(self._computed - self._began) * 1000,
            prefill_ms=(self._first - self._computed) * 1000,
            decode_ms=decode * 1000,
            ttft_ms=(self._first - self._began) * 1000,
            itl_ms=decode * 1000 / max(1, self.completion - 1),
        )
        usage = Usage(prompt=self.prompt, completion=self.completion)
        return [
            *(Stopped(index, "length", limit="tokens") for index in sorted(self._running)),
            Finished(usage, timings),
        ]
