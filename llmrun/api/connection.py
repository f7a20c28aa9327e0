"""A connection that has bounds where uvicorn's has none: how long a request's head may take to come, how long
it may be, and how long a client may take nothing of its answer. Thousands of clients that say half a word
must not keep the others out, nor may one that does not read keep its model in memory.

And it reads requests that offer another protocol (`Upgrade`, as Java's client does) as requests of HTTP/1.1:
the parser takes all that follows them for the other protocol, so that their body would be lost, or be
somebody's next request.

Bodies have theirs in `llmrun.api.body`.
"""

from __future__ import annotations

import asyncio
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 30.0
"""From the connection, or the first byte of its next request, to the last of its head; and for the rest of a
body whose answer is out."""
HEAD_BYTES = 64 * 1024
"""A request line and headers of more are refused, and so is as much between the pieces of a body."""
STALL_SECONDS = 120.0
"""A client that takes no byte for so long, while more waits for it, is gone."""
MAX_CONNECTIONS = 8192
"""More are refused: each may hold `HEAD_BYTES` before anybody knows whose it is."""
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\n"
    b"retry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
)  # fmt: skip
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)  # fmt: skip


class BoundedConnection(HttpToolsProtocol):
    """See the module."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_head = True
        self._in_message = False
        self._body: bytes | None = None  # the header that frames it, of a request that offers a protocol
        self._resuming = False  # the parser is told of that body
        self._bytes = 0  # that came since the last piece of a body, or since a message began
        self._deadline: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            transport.write(_FULL)
            transport.close()
        self._await()

    def connection_lost(self, exc: Exception | None) -> None:
        self._came()
        self._moves()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._bytes += len(data)
        self._unset_keepalive_if_required()
        try:
            rest = data
            while rest:
                rest = self._fed(rest)
        except httptools.HttpParserError:
            self.send_400_response("Invalid HTTP request received.")
            return
        if self._bytes > HEAD_BYTES and not self.transport.is_closing():
            if self.cycle is None or self.cycle.response_complete:
                self.transport.write(_TOO_LARGE)
            self.transport.close()

    def _fed(self, data: bytes) -> bytes:
        """Give `data` to the parser; what stands behind a head that offers a protocol is given back."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            rest = data[offer.args[0] :]
        else:
            return b""
        self.parser = httptools.HttpRequestParser(self)
        if self._body:
            self._resuming = True
            self.parser.feed_data(b"POST / HTTP/1.1\r\n" + self._body + b"\r\n\r\n")
            self._resuming, self._body = False, None
        return rest

    def on_message_begin(self) -> None:
        if self._resuming:
            return
        super().on_message_begin()
        self._in_head = self._in_message = True
        self._bytes = 0
        self._await()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head and not self._resuming:  # not a trailer: what stands behind a body decides nothing
            super().on_header(name, value)

    def on_url(self, url: bytes) -> None:
        if not self._resuming:
            super().on_url(url)

    def on_headers_complete(self) -> None:
        if self._resuming:
            return
        if self.parser.should_upgrade():
            self._body = _framing(self.headers)
        self._in_head = False
        self._came()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._body:  # it is still to come
            return
        self._in_message = False
        self._came()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._in_message:
            self._await()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        self._moves()
        super().resume_writing()

    def _await(self) -> None:
        if self._deadline is None and not self.transport.is_closing():
            self._deadline = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _came(self) -> None:
        self._bytes = 0
        if self._deadline:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        self.transport.close()

    def _watch(self, waiting: int) -> None:
        self._stalled = self.loop.call_later(STALL_SECONDS, self._look, waiting)

    def _moves(self) -> None:
        if self._stalled:
            self._stalled.cancel()
            self._stalled = None

    def _look(self, waiting: int) -> None:
        """Whether the client took any of the `waiting` bytes: nothing is written while they wait."""
        if (left := self.transport.get_write_buffer_size()) < waiting:
            self._watch(left)
        else:
            self.transport.abort()


def _framing(headers: list[tuple[bytes, bytes]]) -> bytes | None:
    """The header that says how long the body is; None where there is none. The parser has refused two."""
    for name, value in headers:
        if name == b"transfer-encoding" or (name == b"content-length" and int(value)):
            return name + b": " + value
    return None
