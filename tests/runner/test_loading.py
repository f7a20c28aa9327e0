"""What a model's first load leaves for the next, on a tiny model."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest

from llmrun.engine import EngineRequest
from llmrun.engine.vectors import VectorRequest
from llmrun.llama import Context
from llmrun.runner import loading
from llmrun.runner.frames import Load
from llmrun.runner.loading import Loaded, load
from llmrun.runner.step_times import StepTimes, file_for, read
from llmrun.types import Event, Finished, SamplingParams
from tests.support.tiny import write_llama


def answered(spec: Load) -> tuple[Loaded, float]:
    """A model that has answered a request and is closed; and what it took a step to cost before."""
    ended: SimpleQueue[None] = SimpleQueue()

    def emit(events: list[tuple[str, Event]]) -> None:
        if isinstance(events[-1][1], Finished):
            ended.put(None)

    loaded = load(spec, emit, lambda _fraction: None)
    engine = loaded.engine
    assert engine is not None
    before = engine.cost.seconds(1)
    thread = threading.Thread(target=engine.run)
    thread.start()
    greedy = SamplingParams(temperature=0)
    engine.submit(
        EngineRequest(id="r", prompt=(20, 30), params=greedy, seed=0, arrived=time.monotonic(), max_tokens=60)
    )
    ended.get(timeout=60)
    engine.stop()
    thread.join(30)
    loaded.close()
    return loaded, before


def spec_of(folder: Path, **given: Any) -> Load:
    path = folder / "tiny.gguf"
    if not path.exists():
        write_llama(path)
    plain = {"name": "tiny", "path": str(path), "content": "c", "kv_folder": str(folder / "kv"), "ctx": 256}
    return Load(**{**plain, "cache_disk": 0, "drafting": "off", **given})


def test_load_begins_with_what_the_one_before_learnt(tmp_path: Path) -> None:
    spec = spec_of(tmp_path)
    first, unknown = answered(spec)
    kept = read(file_for(spec))
    assert unknown == 0.0
    assert kept.seconds.keys() == {1}
    assert first.engine is not None
    assert first.engine.threads is not None
    assert kept.threads == (first.engine.threads.threads if first.engine.threads.explored else None)
    _, known = answered(spec)
    assert known == kept.seconds[1]


def test_load_obeys_the_threads_that_are_set(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, threads=1)
    loaded, _ = answered(spec)
    assert loaded.engine is not None
    assert loaded.engine.threads is None
    assert read(file_for(spec)).threads is None


def test_load_without_a_cache_keeps_nothing(tmp_path: Path) -> None:
    answered(spec_of(tmp_path, kv_folder=None))
    assert [path.name for path in tmp_path.iterdir()] == ["tiny.gguf"]
    assert read(None) == StepTimes()


@pytest.mark.skipif(sys.platform != "linux", reason="threads of a process are counted in /proc")
def test_load_and_embedding_beside_an_engine_leave_no_compute_threads(tmp_path: Path) -> None:
    def threads() -> int:
        return len(list(Path("/proc/self/task").iterdir()))

    def settled(count: int) -> int:
        """A thread's team ends a moment after it can be joined."""
        for _ in range(200):
            if threads() == count:
                break
            time.sleep(0.02)
        return threads()

    ended: SimpleQueue[None] = SimpleQueue()

    def emit(events: list[tuple[str, Event]]) -> None:
        if isinstance(events[-1][1], Finished):
            ended.put(None)

    def at_rest() -> int:
        """Teams of what ran before may still be ending."""
        counts = []
        for _ in range(200):
            counts.append(threads())
            if len(counts) > 10 and len(set(counts[-10:])) == 1:
                break
            time.sleep(0.02)
        return counts[-1]

    before = at_rest()
    loaded = load(spec_of(tmp_path, threads=3), emit, lambda _fraction: None)
    loaded_with = settled(before)
    embedder = loaded.embedder
    thread = threading.Thread(target=embedder.run, daemon=True)
    thread.start()
    inputs = (np.array([20, 30], np.int32),)
    embedder.submit(VectorRequest(id="v", inputs=inputs, truncated=(0,), arrived=time.monotonic()))
    ended.get(timeout=60)
    embedding = settled(before + 1)
    embedder.stop()
    thread.join(30)
    loaded.close()
    assert (loaded_with, embedding) == (before, before + 1)


def test_load_says_that_the_weights_are_there_before_it_makes_a_context(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []

    def context(*given: Any, **more: Any) -> Context:
        order.append("context")
        return Context(*given, **more)

    monkeypatch.setattr(loading, "Context", context)
    load(spec_of(tmp_path), lambda _: None, lambda _: None, lambda: order.append("weights")).close()
    assert order == ["weights", "context"]
