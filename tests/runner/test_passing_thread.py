from __future__ import annotations

import threading

import pytest

from llmrun.runner.passing_thread import on_passing_thread


def test_work_on_a_passing_thread_is_done_when_it_returns_and_the_thread_is_gone() -> None:
    done: list[threading.Thread] = []
    on_passing_thread(lambda: done.append(threading.current_thread()))
    (thread,) = done
    assert thread is not threading.current_thread()
    assert not thread.is_alive()


def test_work_on_a_passing_thread_that_fails_raises_its_own_error() -> None:
    def fail() -> None:
        raise ValueError("no weights")

    with pytest.raises(ValueError, match="no weights"):
        on_passing_thread(fail)
