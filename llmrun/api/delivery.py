"""An answer on its way to the client: as one body, or as a stream that is never silent for long."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Protocol, TypeVar

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


Body = TypeVar("Body", covariant=True)


class Fold(Protocol[Body]):
    """Builds a whole reply out of events."""

    def add(self, request: int, event: Event, /) -> None: ...
    def body(self) -> Body: ...


class Encoder(Protocol):
    """Turns events into the bytes of a stream."""

    def event(self, request: int, event: Event, /) -> bytes: ...
    def end(self) -> bytes: ...


async def whole(
    request: Request, in_flight: InFlight, events: AsyncGenerator[Numbered, None], fold: Fold[Body]
) -> Body:
    """The reply as one body. Raises what the events raise, and ClientGone."""

    async def work() -> None:
        async with aclosing(events):
            async for number, event in events:
                fold.add(number, event)

    await in_flight.run(request.receive, work())
    return fold.body()


async def encoded(events: AsyncGenerator[Numbered, None], encoder: Encoder) -> AsyncGenerator[bytes, None]:
    """The events as the bytes of a stream, often none, and its end."""
    async with aclosing(events):
        async for number, event in events:
            yield encoder.event(number, event)
    yield encoder.end()


class LiveStream(StreamingResponse):
    """Pieces of a body as they come, of a dialect's `media_type`.

    error_piece  puts a failure after the headers into bytes
    ping         what is sent where nothing was for `heartbeat` seconds (None: `HEARTBEAT`; infinite: never)
    """

    def __init__(
        self,
        in_flight: InFlight,
        pieces: AsyncGenerator[bytes, None],
        error_piece: Callable[[LlmrunError], bytes],
        ping: Callable[[], bytes],
        media_type: str,
        heartbeat: float | None = None,
    ) -> None:
        headers = {"cache-control": "no-cache", "x-accel-buffering": "no"}
        super().__init__((), headers=headers, media_type=media_type)
        self._in_flight = in_flight
        self._pieces = pieces
        self._error_piece = error_piece
        self._ping = ping
        self._heartbeat = HEARTBEAT if heartbeat is None else heartbeat
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
            await self._end(send, self._error_piece(as_known(error, request_id)))

    async def _deliver(self, send: Send) -> None:
        heart = asyncio.create_task(self._keep_alive(send))
        try:
            async with aclosing(self._pieces):
                async for piece in self._pieces:
                    await self._write(send, piece)
        finally:
            heart.cancel()
            await asyncio.wait({heart})
        await self._end(send, b"")

    async def _keep_alive(self, send: Send) -> None:
        await asyncio.sleep(min(GRACE, self._heartbeat))
        while True:
            quiet = not self._wrote and math.isfinite(self._heartbeat)
            await self._write(send, self._ping() if quiet else b"")
            self._wrote = False
            await asyncio.sleep(self._heartbeat)

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


class EventStream(LiveStream):
    """The reply as server-sent events."""

    def __init__(
        self,
        in_flight: InFlight,
        events: AsyncGenerator[Numbered, None],
        encoder: Encoder,
        error_event: Callable[[LlmrunError], bytes],
        ping: Callable[[], bytes] = lambda: sse.PING,
        heartbeat: float | None = None,
    ) -> None:
        pieces = encoded(events, encoder)
        super().__init__(in_flight, pieces, error_event, ping, "text/event-stream", heartbeat)
