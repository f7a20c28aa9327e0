"""Thousands of random requests through one engine with few cells: nothing may be left behind.

What they ask for is mixed: shared beginnings, several answers, grammars, shifts, scores, stop strings. They
are cancelled at any moment; prefixes leave the cells for a small host memory, guesses are made ahead, and
sequences are swapped out.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter

import psutil
import pytest

from llmrun.chat.output_grammar import grammar_of
from llmrun.engine import Engine, EngineRequest, Grammars, SavedPrefixes
from llmrun.engine.drafting import Ngrams
from llmrun.engine.request import Shift
from llmrun.llama import Model
from llmrun.types import Event, Failed, Finished, OutputFormat, SamplingParams
from tests.support.models import tiny_context

REQUESTS = 10_000
"""Of the whole run, which takes 50 s of processor time; a quarter of them where real tests are left out."""
WARM = 0.3
"""The share after which memory is what it stays: buffers have grown, caches are full."""
IN_FLIGHT = 24
CTX, SLOTS, PARALLEL, BATCH = 256, 10, 6, 64
RAM = 300_000
GROWTH = 24 * 1024 * 1024
"""Bytes that the process may grow after that: what allocators do."""


class Load:
    """Asks for random things, and counts how each of them ended."""

    def __init__(self, model: Model, grammars: Grammars, seed: int) -> None:
        self._rng = random.Random(seed)
        self._grammars = grammars
        self._asked = 0
        self._beginnings = [self._tokens(self._rng.randint(20, 150)) for _ in range(12)]
        self._room = threading.Semaphore(IN_FLIGHT)
        self.ends: Counter[str] = Counter()
        self.codes: Counter[str] = Counter()
        self.context = tiny_context(model, CTX, SLOTS, BATCH)
        self.saved = SavedPrefixes(RAM, least=16)
        self.engine = Engine(
            self.context,
            batch=BATCH,
            parallel=PARALLEL,
            emit=self._take,
            clock=time.monotonic,
            saved=self.saved,
            drafters=(Ngrams(CTX),),
        )
        self.thread = threading.Thread(target=self.engine.run)
        self.thread.start()

    def ask(self, count: int) -> None:
        """Submit so many requests, some of which are cancelled; returns when all have ended."""
        open_ids: list[str] = []
        for _ in range(count):
            assert self._room.acquire(timeout=60), "no request has ended for a minute"
            request = self._request()
            self.engine.submit(request)
            open_ids = [*open_ids[1 - IN_FLIGHT :], request.id]
            if self._rng.random() < 0.15:
                self.engine.cancel(self._rng.choice(open_ids))
        for _ in range(IN_FLIGHT):
            assert self._room.acquire(timeout=60), "a request has not ended"
        self._room.release(IN_FLIGHT)

    def close(self) -> None:
        self.engine.stop()
        self.thread.join(30)
        self.context.close()

    def _take(self, events: list[tuple[str, Event]]) -> None:
        for request_id, event in events:
            if isinstance(event, Finished | Failed):
                self.ends[request_id] += 1
                self.codes["ok" if isinstance(event, Finished) else event.error.code] += 1
                self._room.release()

    def _tokens(self, count: int) -> list[int]:
        return [self._rng.randrange(10, 260) for _ in range(count)]

    def _request(self) -> EngineRequest:
        rng = self._rng
        self._asked += 1
        prompt = [*rng.choice(self._beginnings), *self._tokens(rng.choice((1, 3, 10, 60)))]
        if rng.random() < 0.2:
            prompt = self._tokens(8) * rng.randint(2, 8)  # repeats itself: guesses are made
        n = rng.choice((1, 1, 1, 1, 2, 3))
        scored = rng.random() < 0.03
        grammar = ()
        if rng.random() < 0.02:
            wanted = OutputFormat(kind="json_schema", text='{"enum": ["yes", "no", "who knows"]}')
            grammar = self._grammars.start(grammar_of(wanted), n)
        return EngineRequest(
            id=f"r{self._asked}",
            prompt=tuple(prompt[: CTX - 40]),
            params=SamplingParams(temperature=rng.choice((0.0, 0.0, 1.0))),
            seed=rng.getrandbits(32),
            arrived=time.monotonic(),
            n=n,
            max_tokens=rng.choice((0, 1, 4, 8, 16, 30)),
            stop=("a",) if rng.random() < 0.2 else (),
            logprobs=2 if scored or rng.random() < 0.03 else None,
            score_from=1 if scored else None,
            constraints=grammar,
            client=rng.choice("abc"),
            priority=rng.choice((0, 0, 0, 1)),
            shift=Shift(window=len(prompt[: CTX - 40]) + 5, keep=4) if rng.random() < 0.05 else None,
        )


def resident_bytes() -> int:
    return int(psutil.Process().memory_info().rss)


@pytest.fixture
def count(pytestconfig: pytest.Config) -> int:
    """The shorter run is the beginning of the longer one, and would prove nothing beside it."""
    return REQUESTS // 4 if "not real" in pytestconfig.getoption("markexpr") else REQUESTS


@pytest.mark.timeout(600)
def test_random_requests_leave_nothing_behind(model: Model, grammars: Grammars, count: int) -> None:
    load = Load(model, grammars, seed=11)
    try:
        load.ask(int(WARM * count))
        before = resident_bytes()
        load.ask(count - int(WARM * count))
        grown = resident_bytes() - before
    finally:
        load.close()
    engine, scheduler = load.engine, load.engine.scheduler
    assert not load.thread.is_alive()
    assert len(load.ends) == count
    assert set(load.ends.values()) == {1}
    assert set(load.codes) == {"ok", "cancelled"}
    assert grown < GROWTH, f"{grown / 1e6:.1f} MB more"
    assert (scheduler.running, list(scheduler.swapped), len(scheduler.waiting)) == ([], [], 0)
    assert (len(engine._jobs), len(engine._choosers)) == (0, 0)
    assert scheduler.cells.free == scheduler.cells.total
    assert sorted(scheduler.prefixes.free_slots) == list(range(SLOTS))
    assert load.saved.ram_bytes <= RAM
    # That all of it happened, or the above says little.
    assert min(scheduler.preemptions, scheduler.shared, load.saved.ram_hits, load.codes["cancelled"]) > 50
    assert engine.counters.accepted > 50
