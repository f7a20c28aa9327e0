"""The engine's numbers, and the embedder's, as a Stats frame."""

from __future__ import annotations

from collections.abc import Callable

from llmrun.engine import Embedder, Engine
from llmrun.runner.frames import Stats


class Statistics:
    """Reads counters that the engine's and the embedder's threads change; each is one integer, so a reading
    may be a step old but never torn."""

    def __init__(self, engine: Engine | None, embedder: Embedder, clock: Callable[[], float]) -> None:
        self._engine = engine
        self._embedder = embedder
        self._clock = clock
        self._read_at = clock()
        self._completion = 0

    def read(self) -> Stats:
        """The numbers now; `decode_tps` is the mean since the last reading."""
        made = self._embedder.counters
        if self._engine is None:
            return Stats(running=self._embedder.running, prompt_tokens=made.prompt_tokens, steps=made.steps)
        scheduler, counters, cells = (
            self._engine.scheduler,
            self._engine.counters,
            self._engine.scheduler.cells,
        )
        now, completion = self._clock(), counters.completion_tokens
        speed = (completion - self._completion) / max(now - self._read_at, 1e-9)
        self._read_at, self._completion = now, completion
        return Stats(
            running=len(scheduler.running) + self._embedder.running,
            waiting=len(scheduler.waiting) + len(scheduler.swapped),
            kv_used=cells.running,
            kv_retained=cells.retained,
            kv_total=cells.total,
            prompt_tokens=counters.prompt_tokens + made.prompt_tokens,
            cached_tokens=counters.cached_tokens,
            completion_tokens=completion,
            drafted=counters.drafted,
            accepted=counters.accepted,
            steps=counters.steps + made.steps,
            preemptions=scheduler.preemptions,
            decode_tps=speed,
        )
