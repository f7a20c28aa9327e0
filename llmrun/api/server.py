"""uvicorn around our app: how it begins to serve, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from types import FrameType

import uvicorn

from llmrun import log
from llmrun.access.gate import Gate
from llmrun.access.keeping import keep
from llmrun.access.usage import UsageLog
from llmrun.api.app import create_app
from llmrun.api.certificate import Certificate
from llmrun.api.connection import BoundedConnection
from llmrun.api.inflight import InFlight
from llmrun.config import Settings
from llmrun.daemon.service import Service

DRAIN = 5
"""Seconds that answers may still run after the daemon was asked to end."""
KEEP_ALIVE = 75
"""Seconds that an idle connection stays open: longer than clients keep theirs, so they close first."""


class Server(uvicorn.Server):
    """Ends answers that outlast `DRAIN`, and returns normally after a signal.

    usage  what keys use, to be kept on disk; None where there are no keys
    tls    None: plain HTTP
    """

    def __init__(
        self,
        service: Service,
        settings: Settings,
        gate: Gate,
        usage: UsageLog | None,
        tls: Certificate | None,
        on_listening: Callable[[], None],
    ) -> None:
        self._service = service
        self._usage = usage
        self._in_flight = InFlight()
        self._on_listening = on_listening
        super().__init__(
            uvicorn.Config(
                create_app(service, settings, self.ask_to_end, self._in_flight, gate),
                http=BoundedConnection,
                lifespan="off",
                ws="none",
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,  # who asks is told by the connection, not by what it says
                timeout_keep_alive=KEEP_ALIVE,
                timeout_graceful_shutdown=DRAIN + 2,
                ssl_certfile=tls.cert if tls else None,
                ssl_keyfile=tls.key if tls else None,
            )
        )
        log.adopt("uvicorn.error", "asyncio")

    async def run_on(self, listener: socket.socket) -> None:
        """Serve until asked to end; then every runner has ended."""
        keeping = asyncio.create_task(keep(self._usage)) if self._usage else None
        try:
            await self.serve(sockets=[listener])
        finally:
            await self._service.close()
            if keeping:
                keeping.cancel()
                await asyncio.wait({keeping})

    def ask_to_end(self) -> None:
        """End soon. Any thread, any number of times."""
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_listening()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._in_flight.refuse_more()
        deadline = asyncio.get_running_loop().call_later(DRAIN, self._in_flight.end_all)
        try:
            await super().shutdown(sockets)
        finally:
            deadline.cancel()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """SIGINT and SIGTERM ask to end; a second one ends at once.

        uvicorn's own raises the signal again at the end, before our cleaning up.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {
            number: signal.signal(number, self._signalled) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _signalled(self, _number: int, _frame: FrameType | None) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True
