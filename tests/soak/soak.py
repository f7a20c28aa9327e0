"""Rounds of mixed requests against a real daemon, with a rest after each at which everything must be as it
was.

In: an LLMRUN_HOME with the default model, seconds, a seed. Out: a `Report`. Every fifth round is a rush: more
at once than may wait, so that some are told to come again, and are served as soon as they do.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from llmrun.access.keyring import Keyring
from llmrun.config import DEFAULT_MODEL, Paths
from llmrun.store import Store
from tests.real.daemons import Daemon, eventually, linked_home
from tests.soak import client
from tests.soak.outcomes import End
from tests.soak.requests import KINDS, WORDS, Ask, Models, short, some
from tests.soak.sampling import Sample, at_rest, metric, sample
from tests.soak.trend import Growth, growth
from tests.support.tiny import Shape, write_llama

CTX = 512
WORKERS = 6
QUEUE = 8
RUSH = 24
EVERY = 5  # rounds, to the next rush
OWNER = "soak-owner"
PER_MINUTE = 12
ALLOWED = {"memory": (0.05, 6.0), "files": (0.0, 1.0), "threads": (0.0, 1.0), "cells in use": (0.0, 0.0)}
"""Growth by the last words of what is sampled: share of the first third, and least."""
SETTLED = 20
"""Samples from which on memory is judged so closely: an allocator takes minutes to have all that it keeps.
Before that, only what could be no such thing is growth."""
COARSE = 80.0


@dataclass
class Report:
    """ends      by kind of request and end, how many
    faults    in words, each of them a failure
    samples   one at each rest, in order
    """

    ends: Counter[tuple[str, End]] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)

    def trends(self) -> dict[str, Growth]:
        """How each sampled number went."""
        return {name: self._trend(name) for name in self.samples[0]}

    def _trend(self, name: str) -> Growth:
        share, least = next((bound for end, bound in ALLOWED.items() if name.endswith(end)), (0.0, 0.0))
        if name.endswith("memory") and len(self.samples) < SETTLED:
            least = COARSE
        return growth([each[name] for each in self.samples], share=share, least=least)

    @property
    def failures(self) -> list[str]:
        """What is wrong; none: all is well."""
        growing = [name for name, trend in self.trends().items() if trend.grows]
        return [*self.faults, *(f"{name} grows" for name in growing)]


class Soak:
    """One daemon under load. `told` gets a line now and then."""

    def __init__(self, daemon: Daemon, models: Models, limited: str, seed: int) -> None:
        self.report = Report()
        self._daemon = daemon
        self._models = models
        self._limited = limited
        self._rng = random.Random(seed)
        self._counts: Counter[End] = Counter()
        self._warm = 0.0

    def run(self, seconds: float, round_seconds: float, told: Callable[[str], None]) -> None:
        """Rounds until `seconds` are over, three at least."""
        self._warm_up()
        deadline = time.monotonic() + seconds
        number = 0
        while number < 3 or time.monotonic() < deadline:
            number += 1
            if number % EVERY == 2:
                asyncio.run(self._rush())
            asyncio.run(self._mixed(round_seconds))
            self._rest(number)
            total = sum(self.report.ends.values())
            told(f"round {number}: {total} requests, {len(self.report.faults)} faults")
        self._compare_counts()

    def _warm_up(self) -> None:
        """Have everything made that is made once, and the cells and the caches behind them filled: what they
        hold from then on is no growth."""
        words = [" ".join(self._rng.choices(WORDS, k=CTX * 2 // 3)) for _ in range(2)]
        for model, prompt in ((self._models.other, "Hi"), *((self._models.main, each) for each in words)):
            body = {"model": model, "prompt": prompt, "max_tokens": 2}
            self._daemon.http.post("/v1/completions", json=body, timeout=client.PATIENCE).raise_for_status()
        self._warm = metric(self._daemon, "llmrun_requests_total", outcome="ok")

        async def each_kind() -> None:
            for name, (_, make) in KINDS.items():
                await self._one(name, make(self._rng, self._models), client.Manner.READ, self._rng)

        asyncio.run(each_kind())

    async def _mixed(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds

        async def worker(rng: random.Random) -> None:
            while time.monotonic() < deadline:
                name, ask = some(rng, self._models)
                await self._one(name, ask, client.some_manner(rng), rng)

        await asyncio.gather(*(worker(random.Random(self._rng.random())) for _ in range(WORKERS)))

    async def _rush(self) -> None:
        """All at once; who is told to come again does, and gets an answer."""
        refused = 0

        async def insistent(rng: random.Random) -> None:
            nonlocal refused
            while await self._one("a rush", short(rng, self._models), client.Manner.READ, rng) is End.BUSY:
                refused += 1
                await asyncio.sleep(1)  # as Retry-After says

        await asyncio.gather(*(insistent(random.Random(self._rng.random())) for _ in range(RUSH)))
        if not refused:
            self.report.faults.append(f"{RUSH} requests at once, and none was told to come again")

    async def _one(self, name: str, ask: Ask, manner: client.Manner, rng: random.Random) -> End:
        key = self._limited if ask.limited else OWNER
        end, why = await client.ended(self._daemon.port, ask, key, manner, rng)
        if end not in (ask.wanted, End.BUSY, End.HUNG_UP):
            self.report.faults.append(
                f"{name}: {end.value}, not {ask.wanted.value}: {why} after {ask.raw[:300]!r}"
            )
        self.report.ends[name, end] += 1
        self._counts[end] += ask.counts
        return end

    def _rest(self, number: int) -> None:
        """Everything must be back where it began; then that is sampled."""
        daemon, report = self._daemon, self.report
        if daemon.process.poll() is not None:
            raise AssertionError(f"the daemon ended with {daemon.process.returncode}")
        if not eventually(lambda: at_rest(daemon, 2), 10):
            report.faults.append(f"not at rest 10 s after round {number}: {daemon.loaded()}")
        first = report.samples[0] if report.samples else sample(daemon)
        eventually(lambda: sample(daemon)["daemon files"] <= first["daemon files"], 2)
        report.samples.append(sample(daemon))

    def _compare_counts(self) -> None:
        """The daemon counted each request once: those that we saw the end of, and of those that we left at
        most all."""
        daemon = self._daemon
        well = metric(daemon, "llmrun_requests_total", outcome="ok") - self._warm
        seen, left = self._counts[End.FINISHED], self._counts[End.HUNG_UP]
        if not seen <= well <= seen + left:
            self.report.faults.append(
                f"{seen} to {seen + left} requests ended well here, {well:g} in the daemon"
            )
        for name in ("runner_deaths", "load_failures"):
            if metric(daemon, f"llmrun_{name}_total"):
                self.report.faults.append(f"{name}: {metric(daemon, f'llmrun_{name}_total'):g}")


def soak(
    models: Path,
    place: Path,
    *,
    seconds: float,
    round_seconds: float,
    seed: int,
    threads: str,
    told: Callable[[str], None],
) -> Report:
    """Soak a daemon that has the models of the home `models`; `place` is an empty folder for what it needs
    beside. Raises AssertionError where it dies, leaves a process behind, or cannot be started."""
    home = linked_home(models, place / "home")
    paths = Paths.find({"LLMRUN_HOME": str(home)})
    limited = Keyring.of(paths).create("limited", requests_per_minute=PER_MINUTE)
    store = Store(paths)
    for name in ("other", "guest"):
        store.copy(str(write_llama(place / f"{name}.gguf", Shape(ctx=CTX, seed=len(name)))), name)
    with (place / "log").open("wb") as log:
        daemon = Daemon(
            home,
            stderr=log,
            LLMRUN_API_KEY=OWNER,
            LLMRUN_CTX=str(CTX),
            LLMRUN_PARALLEL="4",
            LLMRUN_MAX_QUEUE=str(QUEUE),
            LLMRUN_THREADS=threads,
            LLMRUN_CACHE_RAM="16M",
            LLMRUN_CACHE_DISK="16M",
        )
        daemon.http.headers["authorization"] = f"Bearer {OWNER}"
        try:
            soaking = Soak(daemon, Models(DEFAULT_MODEL, "other", "guest"), limited, seed)
            soaking.run(seconds, round_seconds, told)
        finally:
            daemon.close()
    text = (place / "log").read_text("utf-8", "replace")
    if "Traceback" in text:
        at = text.index("Traceback")
        soaking.report.faults.append(f"a traceback in the log: {text[max(0, at - 300) : at + 1500]}")
    return soaking.report
