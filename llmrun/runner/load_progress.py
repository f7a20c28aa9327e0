"""How far a model's weights are, while llama.cpp loads them.

It goes over them twice. First it maps the files and waits until the system has read them, which takes as
long as the disk does and of which it says nothing: that is seen in how this process grows. Then it puts each
tensor where it is computed, which it tells; where tensors stay in the mapped file that takes no time. Each is
half of what is reported. Where the system reads mapped files only when they are used, the first half is not
seen.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psutil

Report = Callable[[float], None]
_EVERY = 0.2  # seconds
_STEP = 0.01  # what is worth telling


def resident() -> int:
    """Bytes of memory that this process has."""
    return int(psutil.Process().memory_info().rss)


class LoadProgress:
    """`size` bytes of weights. `report` gets growing fractions, 1.0 when all is in place, from one thread at
    a time. `memory` tells the bytes that this process has."""

    def __init__(self, size: int, report: Report, memory: Callable[[], int] = resident) -> None:
        self._size = size
        self._report = report
        self._memory = memory
        self._before = memory()
        self._read = 0.0
        self._placed = 0.0
        self._told = 0.0
        self._lock = threading.Lock()

    def placed(self, fraction: float) -> None:
        """llama.cpp's own word: so much of the weights is in place."""
        with self._lock:
            self._placed = fraction
            self._tell()

    def look(self) -> None:
        """See how much is read."""
        with self._lock:
            self._tell()

    def _tell(self) -> None:
        grown = (self._memory() - self._before) / max(self._size, 1)
        self._read = max(self._read, min(grown, 1.0))  # what was read and let go of again was read
        fraction = 1.0 if self._placed >= 1 else (self._read + self._placed) / 2
        if fraction - self._told >= _STEP or fraction == 1.0 > self._told:
            self._told = fraction
            self._report(fraction)


@contextmanager
def watched(size: int, report: Report, memory: Callable[[], int] = resident) -> Iterator[Report]:
    """Looks again and again as long as it lasts. Yields what llama.cpp tells its fraction to."""
    progress = LoadProgress(size, report, memory)
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_EVERY):
            progress.look()

    thread = threading.Thread(target=watch, name="load progress", daemon=True)
    thread.start()
    try:
        yield progress.placed
    finally:
        over.set()
        thread.join()
