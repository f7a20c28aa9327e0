"""Loaded tiny models for tests, each closed by who asked for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

from llmrun.engine import Engine, EngineRequest, SavedPrefixes, ThreadChoice
from llmrun.engine.drafting import Drafter
from llmrun.llama import Adapter, Context, ContextSettings, Model
from llmrun.types import Event, Failed, Finished, SamplingParams, Stopped
from tests.support.events import joined_text
from tests.support.tiny import DEFAULT, Shape, write_llama

GREEDY = SamplingParams(temperature=0)
ENDS = (2, 4)
"""The tiny models' tokens that end an answer."""
ENDLESS = SamplingParams(temperature=0, logit_bias=dict.fromkeys(ENDS, -1e9))


def tiny_model(folder: Path, shape: Shape = DEFAULT) -> Model:
    return Model(write_llama(folder / "tiny.gguf", shape))


def tiny_context(
    model: Model,
    ctx: int = 512,
    slots: int = 8,
    batch: int = 64,
    kv_type: str = "f16",
    adapters: Sequence[Adapter] = (),
    *,
    unified: bool = True,
    flash_attention: bool | None = None,
) -> Context:
    settings = ContextSettings(
        ctx=ctx,
        batch=batch,
        slots=slots,
        threads=1,
        threads_batch=1,
        kv_type=kv_type,
        unified=unified,
        flash_attention=flash_attention,
    )
    return Context(model, settings, adapters)


class Running:
    """An engine on its thread. Collects each request's events as they come."""

    def __init__(
        self,
        context: Context,
        parallel: int,
        batch: int,
        saved: SavedPrefixes | None = None,
        drafters: tuple[Drafter, ...] = (),
        clock: Callable[[], float] = time.monotonic,
        threads: ThreadChoice | None = None,
        most_retained: int | None = None,
    ) -> None:
        self.engine = Engine(
            context,
            batch=batch,
            parallel=parallel,
            emit=self._take,
            clock=clock,
            saved=saved,
            most_retained=most_retained,
            drafters=drafters,
            threads=threads,
        )
        self.events: dict[str, list[Event]] = {}
        self._ended: SimpleQueue[str] = SimpleQueue()
        self._seen = threading.Condition()
        self.thread = threading.Thread(target=self.engine.run)
        self.thread.start()

    def _take(self, events: list[tuple[str, Event]]) -> None:
        with self._seen:
            for request_id, event in events:
                self.events.setdefault(request_id, []).append(event)
                if isinstance(event, Finished | Failed):
                    self._ended.put(request_id)
            self._seen.notify_all()

    def submit(self, prompt: list[int] | tuple[int, ...], **wanted: object) -> str:
        request_id = f"r{len(self.events)}"
        self.events[request_id] = []
        fields = {"params": GREEDY, "seed": 7, "max_tokens": 16, "arrived": time.monotonic(), **wanted}
        self.engine.submit(EngineRequest(id=request_id, prompt=tuple(prompt), **fields))  # type: ignore[arg-type]
        return request_id

    def wait(self, count: int = 1) -> None:
        """Until `count` more requests have ended."""
        for _ in range(count):
            self._ended.get(timeout=60)

    def wait_for_text(self, request_id: str) -> None:
        """Until a request has said something (or ended)."""
        with self._seen:
            assert self._seen.wait_for(lambda: len(self.events[request_id]) > 1, timeout=60)

    def answer(self, prompt: list[int], **wanted: object) -> str:
        """The text of one request run alone."""
        request_id = self.submit(prompt, **wanted)
        self.wait()
        return joined_text(self.events[request_id])

    def finished(self, request_id: str) -> Finished:
        last = self.events[request_id][-1]
        assert isinstance(last, Finished), last
        return last

    def stopped(self, request_id: str, index: int = 0) -> Stopped:
        return next(e for e in self.events[request_id] if isinstance(e, Stopped) and e.index == index)


@contextmanager
def running(
    model: Model,
    *,
    ctx: int = 512,
    parallel: int = 4,
    slots: int = 12,
    batch: int = 64,
    kv_type: str = "f16",
    adapters: Sequence[Adapter] = (),
    saved: SavedPrefixes | None = None,
    most_retained: int | None = None,
    drafters: tuple[Drafter, ...] = (),
    clock: Callable[[], float] = time.monotonic,
    threads: ThreadChoice | None = None,
    unified: bool = True,
    flash_attention: bool | None = None,
) -> Iterator[Running]:
    """An engine over `model`, ended and its context closed afterwards; cells must add up by then."""
    context = tiny_context(
        model, ctx, slots, batch, kv_type, adapters, unified=unified, flash_attention=flash_attention
    )
    work = Running(context, parallel, batch, saved, drafters, clock, threads, most_retained)
    try:
        yield work
    finally:
        work.engine.stop()
        work.thread.join(30)
        cells = work.engine.scheduler.cells
        context.close()
        assert not work.thread.is_alive()
        assert cells.running == 0
        assert cells.free + cells.retained == cells.total
