from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable

import pytest

from llmrun.runner.priority import _NICE, prefer_this_thread


def _niceness() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def _ask_for_more() -> None:
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)


def _in_thread(change: Callable[[], None]) -> list[int]:
    """The niceness of a new thread, before and after the change, and of one that it then starts."""
    found: list[int] = []

    def inner() -> None:
        found.append(_niceness())
        change()
        found.append(_niceness())
        child = threading.Thread(target=lambda: found.append(_niceness()))
        child.start()
        child.join()

    thread = threading.Thread(target=inner)
    thread.start()
    thread.join()
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="priorities of threads")
def test_thread_that_is_preferred_and_its_own_run_first_where_allowed_and_the_others_stay() -> None:
    before = _niceness()
    first, preferred, started = _in_thread(prefer_this_thread)
    allowed = _in_thread(_ask_for_more)[1] == _NICE
    assert first == before
    assert preferred == started == (_NICE if allowed else before)
    assert _niceness() == before
