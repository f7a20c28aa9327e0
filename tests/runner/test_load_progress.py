from __future__ import annotations

import threading

import pytest

from llmrun.runner import load_progress
from llmrun.runner.load_progress import LoadProgress, watched


class Memory:
    """A process whose memory grows as it is told."""

    def __init__(self) -> None:
        self.bytes = 500

    def __call__(self) -> int:
        return self.bytes


def progress_of(size: int) -> tuple[LoadProgress, Memory, list[float]]:
    memory = Memory()
    told: list[float] = []
    return LoadProgress(size, told.append, memory), memory, told


def test_files_that_are_read_are_half_of_it() -> None:
    progress, memory, told = progress_of(1000)
    for grown in (0, 250, 251, 1000, 1200):
        memory.bytes = 500 + grown
        progress.look()
    assert told == [0.125, 0.5]


def test_tensors_in_place_are_the_other_half_and_the_last_is_all() -> None:
    progress, memory, told = progress_of(1000)
    progress.placed(0.0)
    memory.bytes += 1000
    for fraction in (0.0, 0.5, 0.501, 1.0, 1.0):
        progress.placed(fraction)
    assert told == [0.5, 0.75, 1.0]


def test_all_in_place_is_all_also_where_reading_was_not_seen() -> None:
    progress, _, told = progress_of(1000)
    progress.placed(0.5)
    progress.placed(1.0)
    assert told == [0.25, 1.0]


def test_memory_that_shrinks_takes_nothing_back() -> None:
    progress, memory, told = progress_of(1000)
    memory.bytes += 400
    progress.look()
    memory.bytes -= 800
    progress.look()
    progress.placed(0.5)
    assert told == [0.2, 0.45]


def test_watched_looks_by_itself_and_no_longer_than_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_progress, "_EVERY", 0.001)
    memory, seen = Memory(), threading.Event()
    told: list[float] = []

    def report(fraction: float) -> None:
        told.append(fraction)
        seen.set()

    with watched(1000, report, memory) as placed:
        memory.bytes += 500
        assert seen.wait(10)
        assert told == [0.25]
        placed(1.0)
    memory.bytes += 500
    assert told == [0.25, 1.0]
    assert "load progress" not in {thread.name for thread in threading.enumerate()}
