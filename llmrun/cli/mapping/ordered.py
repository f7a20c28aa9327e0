"""Work on many things at once, and the results in the order of the things.

Knows nothing of what the work is. Memory is bounded: at most `window` things are taken in whose results are
not out, so a slow one holds the others up at some point instead of piling them up behind it.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class InOrder(Generic[T, R]):
    """`work` runs in `workers` threads, `emit` in one of them at a time.

    What `work`, `emit` or the things' iterator raise ends it all: `run` raises it. Then, and when `run` is
    interrupted, nothing more is emitted; threads that still work are left to end by themselves.
    """

    def __init__(
        self, work: Callable[[T], R], emit: Callable[[R], None], *, workers: int, window: int
    ) -> None:
        self._work = work
        self._emit = emit
        self._room = threading.Semaphore(window)
        self._todo: queue.SimpleQueue[tuple[int, T] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._waiting: dict[int, R] = {}
        self._next = 0
        self._stopped = False
        self._problem: BaseException | None = None
        self._done = threading.Event()
        self._workers = workers
        self._working = workers

    def run(self, things: Iterable[T]) -> None:
        """To the end of the things, which are read in a thread of their own. Once only."""
        threads = [threading.Thread(target=self._feed, args=(things,), daemon=True)]
        threads += [threading.Thread(target=self._serve, daemon=True) for _ in range(self._workers)]
        for thread in threads:
            thread.start()
        try:
            self._done.wait()
        finally:
            self._stop()
        if self._problem is not None:
            raise self._problem

    def _feed(self, things: Iterable[T]) -> None:
        try:
            for number, thing in enumerate(things):
                self._room.acquire()
                if self._stopped:
                    return
                self._todo.put((number, thing))
        except BaseException as error:
            self._fail(error)
        finally:
            for _ in range(self._workers):
                self._todo.put(None)

    def _serve(self) -> None:
        try:
            while (item := self._todo.get()) is not None and not self._stopped:
                number, thing = item
                self._put(number, self._work(thing))
        except BaseException as error:
            self._fail(error)
        with self._lock:
            self._working -= 1
            if self._working == 0:
                self._done.set()

    def _put(self, number: int, result: R) -> None:
        with self._lock:
            self._waiting[number] = result
            while not self._stopped and self._next in self._waiting:
                self._emit(self._waiting.pop(self._next))
                self._next += 1
                self._room.release()

    def _fail(self, error: BaseException) -> None:
        self._problem = self._problem or error
        self._stopped = True
        self._room.release()
        self._done.set()

    def _stop(self) -> None:
        """Nothing is emitted once this returns; what is under way is seen through first."""
        self._stopped = True
        with self._lock:
            self._room.release()
