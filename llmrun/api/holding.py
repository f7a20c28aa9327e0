"""How many bytes of bodies the daemon holds at once: each has its bound, a thousand of them need another.

A body counts from its first piece until its request is over, for what was read of it lives as long. Small
ones always pass, so that large ones cannot keep the others out.
"""

from __future__ import annotations

import asyncio

from starlette.types import Scope

from llmrun.errors import OVERLOADED, LlmrunError

MAX_HELD = 128 * 1024 * 1024
"""Bytes of all bodies together. Lists of nothing take twenty times as much once they are read."""
SMALL = 100_000
"""Bytes up to which a body always has room."""
READERS = 2
"""Large bodies that are read at the same time."""
_HELD = "held"


class Holding:
    """One per app; used from its event loop alone.

    reading  to be held while a large body is read
    """

    def __init__(self) -> None:
        self._held = 0
        self.reading = asyncio.Semaphore(READERS)

    def take(self, scope: Scope, count: int) -> None:
        """So many more bytes of a request's body came. OVERLOADED where there is no room for them."""
        held = scope["state"].get(_HELD, 0) + count
        if held > SMALL and self._held + count > MAX_HELD:
            raise LlmrunError(OVERLOADED, "too many large requests are here at the same time", retry_after=2)
        self._held += count
        scope["state"][_HELD] = held

    def give_back(self, scope: Scope) -> None:
        """The request is over."""
        self._held -= scope["state"].pop(_HELD, 0)
