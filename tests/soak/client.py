"""Sends one request over a connection of its own, reads the reply in one of several manners, and says how it
ended."""

from __future__ import annotations

import asyncio
import random
import socket
from enum import Enum

import h11

from tests.soak.outcomes import HUNG_UP, End, Outcome, outcome
from tests.soak.requests import Ask

PATIENCE = 180.0
"""Seconds in which every reply is whole, on a busy machine too."""


class Manner(Enum):
    """How a client behaves: READ all as it comes, SLOWly in small bites, LEAVE at a random moment, or hang up
    in the middle of its own request (HALF)."""

    READ = "read"
    SLOW = "slow"
    LEAVE = "leave"
    HALF = "half"


MANNERS = {Manner.READ: 76, Manner.SLOW: 6, Manner.LEAVE: 14, Manner.HALF: 4}


def some_manner(rng: random.Random) -> Manner:
    return rng.choices(list(MANNERS), list(MANNERS.values()))[0]


async def ended(port: int, ask: Ask, key: str, manner: Manner, rng: random.Random) -> Outcome:
    """The request's end; `Ask.wanted` is not looked at."""
    try:
        if manner is Manner.LEAVE:
            return await asyncio.wait_for(_reply(port, ask, key, manner), rng.uniform(0.0, 1.5))
        return await asyncio.wait_for(_reply(port, ask, key, manner), PATIENCE)
    except asyncio.TimeoutError:
        return HUNG_UP if manner is Manner.LEAVE else Outcome(End.FAULT, f"no end in {PATIENCE:g} s")
    except (OSError, h11.ProtocolError) as error:
        return Outcome(End.FAULT, f"the connection broke: {error!r}")


async def _reply(port: int, ask: Ask, key: str, manner: Manner) -> Outcome:
    slow = manner is Manner.SLOW
    reader, writer = await asyncio.open_connection(
        sock=_socket(port, slow=slow), limit=2048 if slow else 65536
    )
    try:
        wire = h11.Connection(h11.CLIENT)
        request = _request(wire, port, ask, key)
        if manner is Manner.HALF:
            writer.write(request[: len(request) // 2])
            await writer.drain()
            return HUNG_UP
        writer.write(request)
        return await _read(wire, reader, ask, slow=slow)
    finally:
        writer.transport.abort()


def _socket(port: int, *, slow: bool) -> socket.socket:
    client = socket.socket()
    if slow:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    client.connect(("127.0.0.1", port))  # to this machine: answered by the kernel
    client.setblocking(False)
    return client


def _request(wire: h11.Connection, port: int, ask: Ask, key: str) -> bytes:
    headers = {
        "host": f"127.0.0.1:{port}",
        "content-type": "application/json",
        "content-length": str(len(ask.raw)),
        "connection": "close",
        "authorization": f"Bearer {key}",
    }
    head = h11.Request(method="POST", target=ask.path, headers=list(headers.items()))
    events = (head, h11.Data(data=ask.raw), h11.EndOfMessage())
    return b"".join(wire.send(event) or b"" for event in events)


async def _read(wire: h11.Connection, reader: asyncio.StreamReader, ask: Ask, *, slow: bool) -> Outcome:
    status, headers, body = 0, {}, bytearray()
    while True:
        event = wire.next_event()
        if event is h11.NEED_DATA:
            wire.receive_data(await reader.read(96 if slow else 65536))
            if slow:
                await asyncio.sleep(0.01)  # not to wait for anything: this is how a slow client reads
        elif isinstance(event, h11.Response):
            status = event.status_code
            headers = {name.decode(): value.decode("latin-1") for name, value in event.headers}
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage):
            break
        else:
            return Outcome(End.FAULT, f"the reply is cut short: {event!r}")
    if more := await reader.read():
        return Outcome(End.FAULT, f"bytes behind the reply: {more[:100]!r}")
    return outcome(ask.dialect, status, headers, bytes(body))
