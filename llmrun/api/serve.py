"""The daemon's process, from its lock and its socket to the last runner's end.

`serve` is `llmrun serve`: one a user data folder. `serve_private` is the child of one command
(`--local`): no lock, a free port, and it ends with its parent.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import logging
import os
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

import uvicorn

import llmrun
from llmrun import log
from llmrun.access.gate import Gate
from llmrun.access.keeping import keep
from llmrun.access.keyring import Keyring
from llmrun.access.usage import UsageLog
from llmrun.api.app import create_app
from llmrun.api.certificate import Certificate, certificate
from llmrun.api.connection import BoundedConnection
from llmrun.api.inflight import InFlight
from llmrun.config import Paths, Settings
from llmrun.daemon.lock import DaemonAddress, DaemonLock
from llmrun.daemon.service import Service
from llmrun.errors import CONFIG, CONFLICT, USAGE, LlmrunError
from llmrun.hosts import is_loopback
from llmrun.store import Store

logger = logging.getLogger(__name__)

DRAIN = 5
"""Seconds that answers may still run after the daemon was asked to end."""
MANY_FILES = 65_536
KEEP_ALIVE = 75
"""Seconds that an idle connection stays open: longer than clients keep theirs, so they close first."""


def serve(settings: Settings, paths: Paths, *, no_auth: bool = False) -> None:
    """Be the daemon until a signal or a client ends it.

    LlmrunError where another daemon runs on this data folder, the address cannot be had, or it is open
    to others without an API key (`no_auth` allows that).
    """
    host, port, *_ = settings.host
    keyring = Keyring.of(paths)
    if not (is_loopback(host) or settings.api_key or keyring.entries() or no_auth):
        raise LlmrunError(
            USAGE,
            f"on {host} anyone who can reach this machine could use the daemon",
            hint="make a key (llmrun keys create NAME), set --api-key (LLMRUN_API_KEY), or say --no-auth",
        )
    tls = certificate(settings)
    _allow_many_files()
    lock = DaemonLock(paths)
    lock.acquire()
    try:
        with _bind(host, port) as listener:
            address = DaemonAddress(
                pid=os.getpid(),
                host=host,
                port=listener.getsockname()[1],
                version=llmrun.__version__,
                started=time.time(),
                tls=tls is not None,
            )
            usage = UsageLog.of(paths)
            gate = Gate(settings.api_key, keyring, usage, always=not is_loopback(host), no_auth=no_auth)
            service = Service(Store(paths), settings, kv_folder=paths.kv)
            server = _Server(service, settings, gate, usage, tls, lambda: lock.publish(address))
            logger.info("listening on %s", address.url)
            asyncio.run(server.run_on(listener))
            logger.info("ended")
    finally:
        lock.release()


def serve_private(settings: Settings, paths: Paths) -> None:
    """Serve one parent on a free port of 127.0.0.1 until its end of our stdin closes.

    Once it listens, one line goes to stdout: `{"host": …, "port": …, "pid": …}`.
    """
    with _bind("127.0.0.1", 0) as listener:
        host, port = listener.getsockname()

        def say_where() -> None:
            print(json.dumps({"host": host, "port": port, "pid": os.getpid()}), flush=True)

        service = Service(Store(paths), settings, kv_folder=paths.kv)
        server = _Server(service, settings, Gate(settings.api_key), None, None, say_where)
        threading.Thread(target=_when_stdin_ends, args=(server.ask_to_end,), daemon=True).start()
        asyncio.run(server.run_on(listener))


def _bind(host: str, port: int) -> socket.socket:
    """A listening socket; IPv4 where a name has both."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, *_, address = min(found, key=lambda info: info[0] != socket.AF_INET)
        return socket.create_server(address[:2], family=family)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise LlmrunError(
                CONFLICT,
                f"port {port} on {host} is taken by another program",
                hint="end it, or choose another port: --port, LLMRUN_HOST",
            ) from None
        raise LlmrunError(
            CONFIG, f"cannot listen on {host}:{port}: {error}", hint="mend LLMRUN_HOST"
        ) from None


def _allow_many_files() -> None:
    """Every connection is a file: as many as the system lets us have, not the few that shells begin with."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MANY_FILES if hard == resource.RLIM_INFINITY else min(hard, MANY_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):  # macOS has bounds of its own
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _when_stdin_ends(call: Callable[[], None]) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    call()


class _Server(uvicorn.Server):
    """uvicorn around our app: ends answers that outlast `DRAIN`, and returns normally after a signal.

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
        for name in ("uvicorn", "asyncio"):
            logging.getLogger(name).handlers[:] = log.ROOT.handlers

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
