"""The runner's end of the pipes: frames in from one file descriptor, out to another."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterator

from llmrun.runner.frames import Down, Events, FrameSplitter, Pong, Ready, Up, decode_down, encode
from llmrun.types import Event, Stats

READ_SIZE = 1 << 16


def read_frames(fd: int) -> Iterator[Down]:
    """Frames until the other side closes the pipe; one that its end cuts short is dropped."""
    splitter = FrameSplitter()
    with os.fdopen(fd, "rb", buffering=0) as stream:
        while data := stream.read(READ_SIZE):
            for body in splitter.feed(data):
                yield decode_down(body)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


class FrameWriter:
    """Writes frames in the order of `put`, from a thread of its own.

    `put` never blocks, so the engine does not wait for a slow daemon. Statistics are read from
    `stats`, to be set before Ready is put, and sent behind Ready, Events and Pong, at most every `STATS_S`
    seconds. Events go through `read` where it is set, so that what they become is found out off the engine's
    thread.
    """

    STATS_S = 0.25

    def __init__(self, fd: int, clock: Callable[[], float]) -> None:
        self._fd = fd
        self._clock = clock
        self._queue: queue.SimpleQueue[Up | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self.stats: Callable[[], Stats] | None = None
        self.read: Callable[[list[tuple[str, Event]]], list[tuple[str, Event]]] | None = None

    def start(self) -> None:
        self._thread.start()

    def put(self, frame: Up) -> None:
        """Queue a frame. From any thread."""
        self._queue.put(frame)

    def close(self) -> None:
        """Write what is queued, then end."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        told = self._clock()
        stale = False
        while True:
            wait = max(0.0, told + self.STATS_S - self._clock()) if stale else None
            try:
                frame = self._queue.get(timeout=wait)
            except queue.Empty:
                pass
            else:
                if frame is None:
                    return
                if not self._write(frame):
                    return
                stale = stale or isinstance(frame, Ready | Events | Pong)
            if stale and self.stats and self._clock() - told >= self.STATS_S:
                if not self._write(self.stats()):
                    return
                told, stale = self._clock(), False

    def _write(self, frame: Up) -> bool:
        if self.read is not None and isinstance(frame, Events):
            frame = Events(self.read(frame.items))
            if not frame.items:
                return True
        try:
            _write_all(self._fd, encode(frame))
        except OSError:
            os._exit(1)  # the daemon is gone; nobody is left to work for
        return True
