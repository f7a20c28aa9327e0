"""The answers being made now, and the two things that end one early: hang-up and shutdown."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.types import Receive

from llmrun.errors import SHUTTING_DOWN, LlmrunError

T = TypeVar("T")


class ClientGone(Exception):
    """The client hung up: nobody is there to be answered."""


class InFlight:
    """One per app; used from its event loop alone."""

    def __init__(self) -> None:
        self._works: set[asyncio.Task[Any]] = set()
        self._refuses = False

    def refuse_more(self) -> None:
        """From now on new work fails with SHUTTING_DOWN; what runs goes on."""
        self._refuses = True

    def end_all(self) -> None:
        """Work that still runs fails with SHUTTING_DOWN."""
        self._refuses = True
        for work in self._works:
            work.cancel()

    async def run(self, receive: Receive, work: Coroutine[Any, Any, T]) -> T:
        """What `work` returns or raises. The request's body has been read from `receive`.

        Raises ClientGone where the client hangs up first, LlmrunError(SHUTTING_DOWN) where the daemon
        ends first. In every case `work` is over when this returns.
        """
        if self._refuses:
            work.close()
            raise LlmrunError(SHUTTING_DOWN, "the daemon is shutting down")
        working = asyncio.ensure_future(work)
        hang_up = asyncio.ensure_future(_hang_up(receive))
        self._works.add(working)
        try:
            await asyncio.wait({working, hang_up}, return_when=asyncio.FIRST_COMPLETED)
            gone = not working.done()
        finally:
            self._works.discard(working)
            working.cancel()
            hang_up.cancel()
            await asyncio.wait({working, hang_up})
        if gone:
            raise ClientGone
        if working.cancelled():
            raise LlmrunError(SHUTTING_DOWN, "the daemon shut down before the answer was complete")
        return working.result()


async def _hang_up(receive: Receive) -> None:
    """Returns when the client has hung up."""
    while (await receive())["type"] != "http.disconnect":
        pass
