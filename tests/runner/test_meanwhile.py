from __future__ import annotations

import threading

import pytest

from llmrun.runner.meanwhile import beside


def test_work_beside_a_block_runs_meanwhile_and_is_done_behind_it() -> None:
    begun = threading.Event()
    with beside(lambda: begun.set() or 7) as done:
        assert begun.wait(10)
    assert done.result(timeout=0) == 7


def test_work_beside_a_block_that_fails_tells_whoever_asks() -> None:
    with beside(lambda: [][0]) as done:
        pass
    with pytest.raises(IndexError):
        done.result()


def test_block_that_fails_waits_for_the_work_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    waited_for = threading.Event()
    ended: list[bool] = []
    join = threading.Thread.join

    def joining(thread: threading.Thread, timeout: float | None = None) -> None:
        waited_for.set()
        join(thread, timeout)

    def block() -> None:
        with beside(lambda: ended.append(waited_for.wait(10))):
            raise ValueError("mine")

    monkeypatch.setattr(threading.Thread, "join", joining)
    with pytest.raises(ValueError, match="mine"):
        block()
    assert ended == [True]


def test_work_beside_a_block_without_memory_for_a_thread_is_done_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    with beside(lambda: 7) as done:
        assert done.result(timeout=0) == 7
