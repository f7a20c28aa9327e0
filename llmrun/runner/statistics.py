"""The engine's numbers, and the embedder's, as a Stats frame."""

from __future__ import annotations

from llmrun.engine import Embedder, Engine
from llmrun.types import Stats


class Statistics:
    """Reads counters that the engine's and the embedder's threads change; each is one number, so a reading
    may be a step old but never torn. What is of late is the mean over the steps since the last reading."""

    def __init__(self, engine: Engine | None, embedder: Embedder) -> None:
        self._engine = engine
        self._embedder = embedder
        self._last = Stats()

    def read(self) -> Stats:
        """The numbers now."""
        made = self._embedder.counters
        if self._engine is None:
            return Stats(running=self._embedder.running, prompt_tokens=made.prompt_tokens, steps=made.steps)
        scheduler, counters = self._engine.scheduler, self._engine.counters
        cells, saved = scheduler.cells, scheduler.prefixes.saved
        last, completion, prefilled = self._last, counters.completion_tokens, counters.prefilled
        decode_tps, prefill_tps, occupancy = last.decode_tps, last.prefill_tps, last.occupancy
        if (seconds := counters.busy_seconds - last.busy_seconds) > 0:
            decode_tps = (completion - last.completion_tokens) / seconds
            prefill_tps = (prefilled - last.prefilled) / seconds
        if steps := counters.decode_steps - last.decode_steps:
            occupancy = (counters.decode_rows - last.decode_rows) / steps / scheduler.parallel
        self._last = Stats(
            running=len(scheduler.running) + self._embedder.running,
            waiting=len(scheduler.waiting) + len(scheduler.swapped),
            swapped=len(scheduler.swapped),
            kv_used=cells.running,
            kv_retained=cells.retained,
            kv_total=cells.total,
            kv_ram_bytes=saved.ram_bytes,
            kv_disk_bytes=saved.disk_bytes,
            hits_cells=scheduler.shared,
            hits_ram=saved.ram_hits,
            hits_disk=saved.disk_hits,
            prompt_tokens=counters.prompt_tokens + made.prompt_tokens,
            cached_tokens=counters.cached_tokens,
            prefilled=prefilled,
            completion_tokens=completion,
            drafted=counters.drafted,
            accepted=counters.accepted,
            steps=counters.steps + made.steps,
            decode_steps=counters.decode_steps,
            decode_rows=counters.decode_rows,
            busy_seconds=counters.busy_seconds,
            preemptions=scheduler.preemptions,
            cancelled=counters.cancelled,
            threads=self._engine.decode_threads,
            decode_tps=decode_tps,
            prefill_tps=prefill_tps,
            occupancy=occupancy,
            itl_p50_ms=counters.itl.percentile(0.5) * 1e3,
            itl_p95_ms=counters.itl.percentile(0.95) * 1e3,
            itl_p99_ms=counters.itl.percentile(0.99) * 1e3,
            itl_max_ms=counters.itl.longest * 1e3,
        )
        return self._last
