"""The requests in flight on one runner, and the events that come back for each.

Every reply ends in exactly one terminal event, whatever the runner sends or does not send.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from llmrun.errors import CONFLICT, LlmrunError
from llmrun.types import Event, Failed, Terminal


class Reply:
    """One request's events, in order, to be iterated once; the last is Finished or Failed.

    The queue has no bound, on purpose. Events are small and `max_tokens` limits their number; with a
    bound, one client that reads slowly would stop the reading of the runner's pipe, and with it every
    other request.
    """

    def __init__(self, request_id: str) -> None:
        self.id = request_id
        self._queue: asyncio.Queue[Event] = asyncio.Queue()
        self._over = False

    def put(self, event: Event) -> None:
        self._queue.put_nowait(event)

    def __aiter__(self) -> Reply:
        return self

    async def __anext__(self) -> Event:
        if self._over:
            raise StopAsyncIteration
        event = await self._queue.get()
        self._over = isinstance(event, Terminal)
        return event


class Replies:
    """Replies by request id, from `open` until the request's terminal event."""

    def __init__(self) -> None:
        self._open: dict[str, Reply | None] = {}

    @property
    def empty(self) -> bool:
        """Whether the runner has said the last word on every request."""
        return not self._open

    def open(self, request_id: str) -> Reply:
        """A new reply; LlmrunError CONFLICT where a request with this id has not ended yet."""
        if request_id in self._open:
            raise LlmrunError(CONFLICT, f"a request with the id {request_id!r} is running already")
        reply = self._open[request_id] = Reply(request_id)
        return reply

    def deliver(self, items: Iterable[tuple[str, Event]]) -> None:
        """Hand out events; those of requests that were dropped or have ended lead nowhere."""
        for request_id, event in items:
            if reply := self._open.get(request_id):
                reply.put(event)
            if isinstance(event, Terminal):
                self._open.pop(request_id, None)

    def drop(self, reply: Reply) -> bool:
        """Nobody reads `reply` any more; False where it has ended. Its id stays taken until the runner
        has said the last word on it, so that late events cannot reach another request."""
        if self._open.get(reply.id) is not reply:
            return False
        self._open[reply.id] = None
        return True

    def fail_all(self, error: LlmrunError) -> None:
        """End every open reply with `error`."""
        event = Failed(error.info())
        for reply in self._open.values():
            if reply:
                reply.put(event)
        self._open.clear()
