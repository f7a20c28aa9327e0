"""The app behind a real uvicorn on a free port, in a thread: for clients that want a socket."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from llmrun.api.app import create_app
from llmrun.api.connection import BoundedConnection
from llmrun.config import Settings
from tests.api.scripted import ScriptedService


@contextmanager
def serving(service: ScriptedService, settings: Settings | None = None) -> Iterator[str]:
    """The base URL of a server for `service`, which runs in the server's event loop."""
    ready = threading.Event()
    addresses: list[str] = []

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            host, port = self.servers[0].sockets[0].getsockname()
            addresses.append(f"http://{host}:{port}")
            ready.set()

    app = create_app(service, settings or Settings(), lambda: None)
    config = uvicorn.Config(
        app, http=BoundedConnection, host="127.0.0.1", port=0, lifespan="off", ws="none", log_config=None
    )
    server = Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    try:
        assert ready.wait(20)
        yield addresses[0]
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()
