"""One daemon per user data folder, and where it listens.

Two files in `Paths.state`. `daemon.lock` is locked for the daemon's life, so the system frees it
however the daemon ends; the file itself stays, for a lock file that is deleted can be held twice.
`daemon.json` holds the `DaemonAddress`; it counts only while the lock is held.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from llmrun.config import Paths
from llmrun.errors import CONFLICT, LlmrunError
from llmrun.hosts import host_port
from llmrun.store.disk import write_atomic, writing

PATIENCE = 1.0
"""Seconds a daemon tries for the lock. A client that looks for one holds it for an instant."""


class DaemonAddress(msgspec.Struct, frozen=True, kw_only=True):
    """A running daemon. `started` in unix seconds; `tls`: it speaks HTTPS."""

    pid: int
    host: str
    port: int
    version: str
    started: float
    tls: bool = False

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://{host_port(self.host, self.port)}"


class DaemonLock:
    """Held by the daemon, from before it binds its socket until its last runner has ended."""

    def __init__(self, paths: Paths) -> None:
        self._folder = paths.state
        # Not bound to a thread: a server may start and end in different ones.
        self._lock = FileLock(_lock_file(paths), thread_local=False)
        self._address = _address_file(paths)

    def acquire(self) -> None:
        """Become the daemon and clear away what a dead one left. LlmrunError CONFLICT where one runs, DISK
        where the folder cannot be written."""
        with writing(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            try:
                self._lock.acquire(timeout=PATIENCE)
            except Timeout:
                raise _conflict(_read(self._address)) from None
            self._address.unlink(missing_ok=True)

    def publish(self, address: DaemonAddress) -> None:
        """Say where this daemon listens, once its socket does. LlmrunError DISK."""
        with writing(self._folder):
            write_atomic(self._address, msgspec.json.encode(address))

    def release(self) -> None:
        """Stop being the daemon; harmless where it is not."""
        if self._lock.is_locked:
            self._address.unlink(missing_ok=True)
            self._lock.release()


def find_daemon(paths: Paths) -> DaemonAddress | None:
    """The daemon that runs on this data folder, if one does and has said where it listens.

    An address whose daemon is dead is cleaned up on the way. Needs no more than read access for a
    daemon that is alive.
    """
    address_file = _address_file(paths)
    address = _read(address_file)
    if address is None:
        return None
    probe = FileLock(_lock_file(paths))
    try:
        probe.acquire(timeout=0)
    except (Timeout, OSError):  # held; or not ours to open, and then not ours to call dead
        return address
    try:
        address_file.unlink(missing_ok=True)
    finally:
        probe.release()
    return None


def _lock_file(paths: Paths) -> Path:
    return paths.state / "daemon.lock"


def _address_file(paths: Paths) -> Path:
    return paths.state / "daemon.json"


def _read(path: Path) -> DaemonAddress | None:
    """The address in the file; None where there is none or it is damaged."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=DaemonAddress)
    except (FileNotFoundError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _conflict(other: DaemonAddress | None) -> LlmrunError:
    if other is None:
        return LlmrunError(CONFLICT, "a daemon is starting on this data folder already")
    return LlmrunError(
        CONFLICT,
        f"a daemon runs on this data folder already (pid {other.pid}, {other.url})",
        hint="end it first: llmrun stop --daemon",
        pid=other.pid,
        url=other.url,
    )
