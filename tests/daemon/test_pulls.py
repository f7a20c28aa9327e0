from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from llmrun.config import Paths
from llmrun.daemon.pulls import Tell, progress_of
from llmrun.errors import DOWNLOAD, LlmrunError
from llmrun.store import PullProgress, Store
from tests.daemon.fakes import run, until
from tests.store.models import gguf_bytes
from tests.store.server import serving

STEP = PullProgress("download", "x.gguf", 1, 2)


class Puller:
    """Reports `steps` times; between them it waits until `go` is set. `ended` is set when it has."""

    def __init__(self, steps: int, error: Exception | None = None) -> None:
        self.steps, self.error = steps, error
        self.go, self.ended = threading.Event(), threading.Event()
        self.told = 0

    def pull(self, on_progress: Tell) -> None:
        try:
            for _ in range(self.steps):
                on_progress(STEP)
                self.told += 1
                assert self.go.wait(10)
            if self.error:
                raise self.error
        finally:
            self.ended.set()


def test_progress_of_tells_every_step_and_ends_with_the_pull() -> None:
    async def story() -> None:
        puller = Puller(3)
        puller.go.set()
        assert [step async for step in progress_of(puller.pull)] == [STEP] * 3
        assert puller.ended.is_set()

    run(story())


def test_progress_of_raises_what_the_pull_raises() -> None:
    async def story() -> None:
        puller = Puller(1, LlmrunError(DOWNLOAD, "no source could be used"))
        puller.go.set()
        steps = progress_of(puller.pull)
        assert await anext(steps) == STEP
        with pytest.raises(LlmrunError, match="no source"):
            await anext(steps)

    run(story())


def test_progress_of_closed_midway_stops_the_pull_at_its_next_step() -> None:
    async def story() -> None:
        puller = Puller(1000)
        steps = progress_of(puller.pull)
        await anext(steps)
        await steps.aclose()
        puller.go.set()
        assert await asyncio.to_thread(puller.ended.wait, 10)
        assert puller.told == 1

    run(story())


def test_progress_of_a_real_pull_closed_midway_stops_it_and_leaves_it_to_the_next(tmp_path: Path) -> None:
    async def story() -> None:
        store = Store(Paths.find({"LLMRUN_HOME": str(tmp_path / "home")}))
        model = gguf_bytes(tmp_path, size=8 << 20)
        gate = threading.Event()
        with serving() as host:
            url = host.put("/x.gguf", model)

            def work(tell: Tell) -> None:
                def held(step: PullProgress) -> None:
                    tell(step)
                    if step.completed:
                        assert gate.wait(10)

                store.pull(url, on_progress=held)

            steps = progress_of(work)
            async for step in steps:
                if step.completed:
                    break
            await steps.aclose()
            gate.set()
            await until(lambda: not [t for t in threading.enumerate() if t.name == "store"])
            assert store.list() == []
            async for _ in progress_of(lambda tell: store.pull(url, on_progress=tell)):
                pass
            assert [one.size for one in store.list()] == [len(model)]

    run(story())
