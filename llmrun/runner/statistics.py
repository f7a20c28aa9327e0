"""The engine's numbers as a Stats frame."""

from __future__ import annotations

from collections.abc import Callable

from llmrun.engine import Engine
from llmrun.runner.frames import Stats


class Statistics:
    """Reads counters that the engine thread changes; each is one integer, so a reading may be a step
    old but never torn."""

    def __init__(self, engine: Engine, clock: Callable[[], float]) -> None:
        self._engine = engine
        self._clock = clock
        self._read_at = clock()
        self._completion = 0

    def read(self) -> Stats:
        """The numbers now; `decode_tps` is the mean since the last reading."""
        scheduler, counters, cells = (
            self._engine.scheduler,
            self._engine.counters,
            self._engine.scheduler.cells,
        )
        now, completion = self._clock(), counters.completion_tokens
        speed = (completion - self._completion) / max(now - self._read_at, 1e-9)
        self._read_at, self._completion = now, completion
        return Stats(
            running=len(scheduler.running),
            waiting=len(scheduler.waiting) + len(scheduler.swapped),
            kv_used=cells.running,
            kv_retained=cells.retained,
            kv_total=cells.total,
            prompt_tokens=counters.prompt_tokens,
            cached_tokens=counters.cached_tokens,
            completion_tokens=completion,
            steps=counters.steps,
            preemptions=scheduler.preemptions,
            decode_tps=speed,
        )
