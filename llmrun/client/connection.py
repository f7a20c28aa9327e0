"""Where the daemon is, and one that runs there when nobody has started it yet.

`LLMRUN_HOST` (or `host` in config.toml) names an address; else the lock in the state folder tells
where this user's daemon listens. Commands that start at once agree on one daemon through a lock.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from filelock import FileLock, Timeout

from llmrun import __version__
from llmrun.client.child import START_TIMEOUT, ServeChild
from llmrun.client.client import Client
from llmrun.config import Paths, Settings
from llmrun.daemon.lock import find_daemon
from llmrun.errors import DAEMON_UNREACHABLE, LlmrunError
from llmrun.hosts import Address, base_url, is_this_machine
from llmrun.store.disk import writing

LOG_LIMIT = 10 * 1024 * 1024


@dataclass(frozen=True)
class Connector:
    """Finds or starts the daemon. `note` and `warn` tell a person what happens meanwhile."""

    paths: Paths
    settings: Settings
    note: Callable[[str], None]
    warn: Callable[[str], None]
    env: Mapping[str, str] = field(default_factory=lambda: os.environ)

    @property
    def named(self) -> bool:
        """Whether the person said where the daemon is. Port 0 is any port: then the lock knows."""
        said = bool(self.env.get("LLMRUN_HOST")) or self.settings.host != Settings().host
        return said and self.settings.host[1] != 0

    @property
    def shares_store(self) -> bool:
        """Whether the daemon is on this machine, so that what is pulled here is found there."""
        return is_this_machine(self.settings.host[0]) or not self.named

    def find(self) -> Client | None:
        """A client of the daemon that runs; None where none answers."""
        address = self._named_address() if self.named else self._locked_address()
        if address is None:
            return None
        host, port, tls = address
        client = Client(host, port, self.settings.api_key, tls=tls, trusts=self.settings.tls_cert)
        if client.is_healthy():
            return client
        client.close()
        return None

    def connect(self) -> Client:
        """A client of the daemon, which is started first where none runs. LlmrunError
        DAEMON_UNREACHABLE where that cannot be."""
        client = self.find()
        if client is None:
            return self._start()
        daemon = find_daemon(self.paths)
        if (
            daemon
            and daemon.version != __version__
            and base_url(daemon.host, daemon.port, daemon.tls) == client.url
        ):
            self.warn(
                f"the daemon is llmrun {daemon.version}, this is {__version__}; "
                "llmrun stop --daemon makes the next command start the new one"
            )
        return client

    def is_running(self) -> bool:
        """Whether the daemon is there, or still on its way out."""
        if not self.named:
            return find_daemon(self.paths) is not None
        client = self.find()
        if client:
            client.close()
        return client is not None

    def _named_address(self) -> Address:
        """Where the person said; a daemon of this machine with our own certificate speaks HTTPS unsaid."""
        host, port, tls = self.settings.host
        ours = self.settings.tls_cert is not None and is_this_machine(host)
        return Address(host, port, tls or ours)

    def _locked_address(self) -> Address | None:
        daemon = find_daemon(self.paths)
        return Address(daemon.host, daemon.port, daemon.tls) if daemon else None

    def _start(self) -> Client:
        if not self.shares_store:
            url = base_url(*self.settings.host)
            hint = "start it there (llmrun serve), or mend LLMRUN_HOST"
            raise LlmrunError(DAEMON_UNREACHABLE, f"no daemon can be reached at {url}", hint=hint)
        lock = self.paths.state / "start.lock"
        with writing(self.paths.state):
            self.paths.state.mkdir(parents=True, exist_ok=True)
            lock.touch()
        try:
            with FileLock(lock, timeout=START_TIMEOUT):
                return self.find() or self._spawn()
        except Timeout:
            raise LlmrunError(
                DAEMON_UNREACHABLE, "another command is still starting the daemon", hint="see: llmrun logs"
            ) from None

    def _spawn(self) -> Client:
        self.note("starting the daemon in the background (llmrun stop --daemon ends it)")
        found: list[Client] = []

        def answers() -> bool:
            if client := self.find():
                found.append(client)
            return bool(found)

        with _open_log(self.paths) as log:
            ServeChild.spawn([], self.env, log).wait_until(answers)
        return found[0]


def _open_log(paths: Paths) -> IO[bytes]:
    """The daemon's log, to be added to; one that has grown long is put aside first."""
    path = log_file(paths)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > LOG_LIMIT:
        path.replace(path.with_suffix(".log.1"))
    return path.open("a+b")


def log_file(paths: Paths) -> Path:
    """Where the background daemon logs."""
    return paths.logs / "daemon.log"
