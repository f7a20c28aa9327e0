"""What other threads tell the engine's: requests, ids of cancelled ones, None at the end."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from contextlib import suppress

from llmrun.engine.request import EngineRequest

Note = EngineRequest | str | None

CALM_S = 0.3
"""Without a note for so long, there is time to tidy up."""


class Inbox:
    """`put` may be called from any thread, `read` from the engine's."""

    def __init__(self) -> None:
        self._notes: queue.SimpleQueue[Note] = queue.SimpleQueue()

    def put(self, note: Note) -> None:
        """Never waits."""
        self._notes.put(note)

    def read(self, *, wait: bool, tidy_one: Callable[[], bool]) -> Iterator[Note]:
        """All notes there are; with `wait` at least one. While it waits, `tidy_one` is called until it says
        that nothing was left (False). Not at once: whoever goes on without a pause should not wait for it."""
        if wait:
            yield self._first(tidy_one)
        with suppress(queue.Empty):
            while True:
                yield self._notes.get(block=False)

    def _first(self, tidy_one: Callable[[], bool]) -> Note:
        untidy = True
        while untidy:
            with suppress(queue.Empty):
                return self._notes.get(timeout=CALM_S)
            untidy = tidy_one()
        return self._notes.get()
