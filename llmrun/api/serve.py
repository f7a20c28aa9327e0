"""The daemon's process, from its lock and its socket to the last runner's end.

`serve` is `llmrun serve`: one a user data folder. `serve_private` is the child of one command
(`--local`): no lock, a free port, and it ends with its parent.

The server's libraries take half a second to import. They are imported once the socket is bound and a spare
runner is starting, so that both import at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import json
import logging
import os
import resource
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import llmrun
from llmrun.access.gate import Gate
from llmrun.access.keyring import Keyring
from llmrun.access.usage import UsageLog
from llmrun.api.certificate import certificate
from llmrun.config import Paths, Settings
from llmrun.daemon.lock import DaemonAddress, DaemonLock
from llmrun.daemon.spare import Spare
from llmrun.errors import CONFIG, CONFLICT, USAGE, LlmrunError
from llmrun.hosts import is_loopback

if TYPE_CHECKING:
    from llmrun.api.server import Server
    from llmrun.daemon.service import Service

logger = logging.getLogger(__name__)

MANY_FILES = 65_536


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

            def make(service: Service) -> Server:
                from llmrun.api.server import Server

                server = Server(service, settings, gate, usage, tls, lambda: lock.publish(address))
                logger.info("listening on %s", address.url)
                return server

            asyncio.run(_live(settings, paths, listener, make))
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

        def make(service: Service) -> Server:
            from llmrun.api.server import Server

            server = Server(service, settings, Gate(settings.api_key), None, None, say_where)
            threading.Thread(target=_when_stdin_ends, args=(server.ask_to_end,), daemon=True).start()
            return server

        asyncio.run(_live(settings, paths, listener, make))


async def _live(
    settings: Settings, paths: Paths, listener: socket.socket, make: Callable[[Service], Server]
) -> None:
    """Serve what `make` makes, from the spare runner's start to the last runner's end."""
    spare = Spare()
    await spare.start()
    try:
        gc.disable()  # what is imported stays; looking through it again and again is a tenth of the work
        _import_fastapi()
        from llmrun.daemon.service import Service
        from llmrun.store import Store

        server = make(Service(Store(paths), settings, kv_folder=paths.kv, spare=spare))
        gc.freeze()
        gc.enable()
        await server.run_on(listener)
    finally:
        await spare.close()


def _import_fastapi() -> None:
    """Without building the validators of all that an OpenAPI description can hold, which is a tenth of the
    server's import: pydantic builds them when the description is asked for."""
    from pydantic import BaseModel

    BaseModel.model_config["defer_build"] = True
    try:
        import fastapi.openapi.models  # noqa: F401 (imported for the sake of later imports)
    finally:
        del BaseModel.model_config["defer_build"]


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
