"""The settings and the daemon."""

from __future__ import annotations

import socket

from llmrun import __version__
from llmrun.cli.doctor.finding import Finding, broken, ok, warning
from llmrun.client.connection import Connector
from llmrun.daemon.lock import DaemonAddress, find_daemon
from llmrun.hosts import base_url, is_this_machine


def check_service(where: Connector) -> list[Finding]:
    """Whether the daemon answers or, where none runs, could be started."""
    client = where.find()
    locked = find_daemon(where.paths)
    if client is None:
        return silent(where, locked)
    with client:
        here = locked if locked and base_url(locked.host, locked.port, locked.tls) == client.url else None
        if here and here.version != __version__:
            text = f"{client.url} is llmrun {here.version}, this is {__version__}"
            return [warning("daemon", text, "llmrun stop --daemon; the next command starts the new one")]
        return [ok("daemon", f"answers at {client.url}")]


def silent(where: Connector, locked: DaemonAddress | None) -> list[Finding]:
    """No daemon answers: is one hanging, is the port taken, or is there simply none yet?"""
    host, port, tls = where.settings.host
    url = base_url(host, port, tls)
    if not where.shares_store:
        return [
            broken("daemon", f"none answers at {url}", "start it there (llmrun serve), or mend LLMRUN_HOST")
        ]
    if locked and not where.named:
        text = f"the one with pid {locked.pid} holds the lock and does not answer at {locked.url}"
        return [broken("daemon", text, f"kill {locked.pid}")]
    if locked:
        return [broken("daemon", f"none answers at {url}; yours is at {locked.url}", "unset LLMRUN_HOST")]
    if is_this_machine(host) and taken(port):
        text = f"none runs, and its port {port} is taken by another program"
        return [broken("daemon", text, f"LLMRUN_HOST=127.0.0.1:{port + 1}, or end that program")]
    return [ok("daemon", f"none runs; a command starts it at {url} when it is needed")]


def taken(port: int) -> bool:
    """Whether something listens on this loopback port."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0
