"""A client that speaks ASGI by hand, so that a test can hang up at any moment and look at every message."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from starlette.types import ASGIApp, Message


class Exchange:
    """One request to `app`. Use inside a running event loop."""

    def __init__(self, app: ASGIApp, path: str, body: dict[str, Any]) -> None:
        raw = msgspec.json.encode(body)
        self._scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }
        self._incoming: asyncio.Queue[Message] = asyncio.Queue()
        self._incoming.put_nowait({"type": "http.request", "body": raw, "more_body": False})
        self.sent: asyncio.Queue[Message] = asyncio.Queue()
        self.task = asyncio.create_task(app(self._scope, self._incoming.get, self.sent.put))

    def hang_up(self) -> None:
        self._incoming.put_nowait({"type": "http.disconnect"})

    async def status(self) -> int:
        message = await asyncio.wait_for(self.sent.get(), 5)
        assert message["type"] == "http.response.start"
        return int(message["status"])

    async def piece(self) -> bytes:
        """The next piece of the body; b"" at its end."""
        message = await asyncio.wait_for(self.sent.get(), 5)
        assert message["type"] == "http.response.body"
        return bytes(message["body"])
