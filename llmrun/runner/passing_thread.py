"""Native work beside the engine's, on a thread that ends with it.

OpenMP keeps a team of compute threads for every thread that ever computed. Once those of all teams are more
than there are cores, libgomp lets none of them spin for more than 100 rounds before it sleeps
(`gomp_throttled_spin_count_var` in its env.c), and on few cores answers take twice as long. A team ends with
the thread that it was for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

Result = TypeVar("Result")


def on_passing_thread(work: Callable[[], Result]) -> Result:
    """The result of `work`, done on a thread of its own that has ended then; or on this one, where there is
    no memory for another. Raises what `work` raises."""
    with beside(work) as done:
        pass
    return done.result()


@contextmanager
def beside(work: Callable[[], Result]) -> Iterator[Future[Result]]:
    """Do `work` on a thread of its own, which has ended behind the block; or before it on this one, where
    there is no memory for another. The future is done then, also where `work` raised."""
    done: Future[Result] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    thread = threading.Thread(target=run, name="passing", daemon=True)
    try:
        thread.start()
    except RuntimeError:
        run()
        yield done
        return
    try:
        yield done
    finally:
        try:
            thread.join()
        finally:
            thread.join()  # after Ctrl-C as well: what it computes with is freed next
