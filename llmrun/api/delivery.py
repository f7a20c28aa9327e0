"""An answer on its way to the client: as one body, or as a stream that is never silent for long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Protocol

from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from llmrun.api import sse
from llmrun.api.answers import Numbered
from llmrun.api.boundary import as_known
from llmrun.api.inflight import ClientGone, InFlight
from llmrun.errors import LlmrunError
from llmrun.types import Event

GRACE = 3.0
"""Seconds that a stream waits for its first event before it sends its headers all the same.

Until then a failure still has its own HTTP status; afterwards it can only be an event.
"""
HEARTBEAT = 4.0
"""Seconds between looks at a stream; one that was silent since the last look gets a comment."""


class Fold(Protocol):
    """Builds a whole reply out of events."""

    def add(self, request: int, event: Event, /) -> None: ...
    def body(self) -> dict[str, object]: ...


class Encoder(Protocol):
    """Turns events into the bytes of a stream."""

    def event(self, request: int, event: Event, /) -> bytes: ...
    def end(self) -> bytes: ...


async def whole(
    request: Request, in_flight: InFlight, events: AsyncGenerator[Numbered, None], fold: Fold
) -> dict[str, object]:
    """The reply as one body. Raises what the events raise, and ClientGone."""

    async def work() -> None:
        async with aclosing(events):
            async for number, event in events:
                fold.add(number, event)

    await in_flight.run(request.receive, work())
    return fold.body()


class EventStream(StreamingResponse):
    """The reply as server-sent events. `error_event` puts a failure after the headers into bytes."""

    media_type = "text/event-stream"

    def __init__(
        self,
        in_flight: InFlight,
        events: AsyncGenerator[Numbered, None],
        encoder: Encoder,
        error_event: Callable[[LlmrunError], bytes],
    ) -> None:
        super().__init__((), headers={"cache-control": "no-cache", "x-accel-buffering": "no"})
        self._in_flight = in_flight
        self._events = events
        self._encoder = encoder
        self._error_event = error_event
        self._began = False
        self._wrote = False  # since the heart last beat
        self._one_writer = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._in_flight.run(receive, self._deliver(send))
        except ClientGone:
            raise
        except Exception as error:
            if not self._began:
                raise
            request_id = scope["state"]["request_id"]
            await self._end(send, self._error_event(as_known(error, request_id)))

    async def _deliver(self, send: Send) -> None:
        heart = asyncio.create_task(self._keep_alive(send))
        try:
            async with aclosing(self._events):
                async for number, event in self._events:
                    await self._write(send, self._encoder.event(number, event))
        finally:
            heart.cancel()
            await asyncio.wait({heart})
        await self._end(send, self._encoder.end())

    async def _keep_alive(self, send: Send) -> None:
        await asyncio.sleep(GRACE)
        while True:
            await self._write(send, b"" if self._wrote else sse.PING)
            self._wrote = False
            await asyncio.sleep(HEARTBEAT)

    async def _write(self, send: Send, data: bytes) -> None:
        async with self._one_writer:
            if not self._began:
                self._began = True
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            if data:
                self._wrote = True
                await send({"type": "http.response.body", "body": data, "more_body": True})

    @staticmethod
    async def _end(send: Send, data: bytes) -> None:
        await send({"type": "http.response.body", "body": data, "more_body": False})
