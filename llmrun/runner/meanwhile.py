"""Work on a thread of its own while this one does something else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

Result = TypeVar("Result")


@contextmanager
def beside(work: Callable[[], Result]) -> Iterator[Future[Result]]:
    """Do `work` on a thread of its own, joined at the end of the block; or before it on this one, where there
    is no memory for another. The future is done then, also where `work` raised; what it raised is told to
    whoever asks the future, and to nobody else."""
    done: Future[Result] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    thread = threading.Thread(target=run, name="beside", daemon=True)
    started = _started(thread)
    if not started:
        run()
    try:
        yield done
    finally:
        if started:
            _join(thread)


def _started(thread: threading.Thread) -> bool:
    """False: there is no memory for it."""
    try:
        thread.start()
    except RuntimeError:
        return False
    return True


def _join(thread: threading.Thread) -> None:
    try:
        thread.join()
    finally:
        thread.join()  # after Ctrl-C as well: what the work uses is freed next
