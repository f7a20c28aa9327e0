"""`--local`: a private daemon for one command, on a free loopback port with a random key.

It ends with the command, however that ends: its stdin reaches end of file when the command is gone,
even by SIGKILL.
"""

from __future__ import annotations

import os
import secrets
import select
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import msgspec

from llmrun.client.child import ServeChild
from llmrun.client.client import Client


class _Listening(msgspec.Struct):
    """What the child says, in one line on its stdout, once it can be reached."""

    host: str
    port: int


@contextmanager
def private_daemon(env: Mapping[str, str] = os.environ) -> Iterator[Client]:
    """A client of a daemon that nobody else can use; it and its models are gone on leaving."""
    key = secrets.token_urlsafe(32)
    with tempfile.TemporaryFile() as log:
        child = ServeChild.spawn(["--private"], {**env, "LLMRUN_API_KEY": key}, log, owned=True)
        try:
            address = _await_address(child)
            with Client(address.host, address.port, key) as client:
                yield client
        finally:
            child.end()


def _await_address(child: ServeChild) -> _Listening:
    stdout = child.process.stdout
    assert stdout is not None
    lines: list[bytes] = []

    def said() -> bool:
        if select.select([stdout], [], [], 0)[0] and (line := stdout.readline()):
            lines.append(line)
        return bool(lines)

    child.wait_until(said)
    return msgspec.json.decode(lines[0], type=_Listening)
