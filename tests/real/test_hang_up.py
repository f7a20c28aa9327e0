"""Clients that hang up, over raw sockets: in the queue, in prefill and in decode, in every dialect."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from llmrun.config import DEFAULT_MODEL
from tests.real.daemons import Daemon, eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]

CTX = 4096
LONG = "The ship went on over the quiet sea. " * 350  # some 2,800 tokens
STORY = "Write a long story about a ship and its crew, in ten chapters."
ROUTES = ["/v1/chat/completions", "/v1/messages", "/api/chat", "/completion"]


@pytest.fixture(scope="module")
def daemon(home: Path) -> Iterator[Daemon]:
    """One that answers one request at a time, so that a second one waits, and keeps no prefixes."""
    running = Daemon(home, LLMRUN_CTX=str(CTX), LLMRUN_PARALLEL="1", LLMRUN_CACHE_RAM="0")
    running.http.post("/completion", json={"prompt": "Hi", "n_predict": 1}).raise_for_status()
    yield running
    running.close()


def body(route: str, text: str, *, stream: bool) -> dict[str, Any]:
    """An answer to `text` that goes on until the context is full, where the dialect can say so."""
    asked = {"model": DEFAULT_MODEL, "stream": stream}
    turns = [{"role": "user", "content": text}]
    if route == "/completion":
        return {**asked, "prompt": text, "ignore_eos": True, "n_predict": -1}
    if route == "/api/chat":
        return {**asked, "messages": turns, "options": {"num_predict": -1}}
    if route == "/v1/messages":
        return {**asked, "messages": turns, "max_tokens": CTX}
    return {**asked, "messages": turns, "max_tokens": CTX, "ignore_eos": True}


@contextmanager
def sent(daemon: Daemon, route: str, text: str, *, stream: bool) -> Iterator[socket.socket]:
    """A connection on which such a request was sent; it is cut at the end."""
    raw = json.dumps(body(route, text, stream=stream)).encode()
    head = f"POST {route} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", daemon.port)) as connection:
        connection.settimeout(60)
        connection.sendall(f"{head}Content-Length: {len(raw)}\r\n\r\n".encode() + raw)
        yield connection


def stat(daemon: Daemon, name: str) -> int:
    (model,) = daemon.loaded()
    return int(model["stats"][name])


def text_of(route: str, phase: str, stream: bool, text: str) -> str:
    """`text` behind a beginning that no other case has, so that none of it is cached."""
    return f"{route} {phase} {stream}: {text}"


def headers_came(connection: socket.socket) -> bool:
    """Reads as far as the end of the headers of a good reply."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(1)
    return received.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("route", ROUTES)
def test_hang_up_in_prefill_ends_it_where_it_is(daemon: Daemon, route: str, stream: bool) -> None:
    before = stat(daemon, "prefilled")
    with sent(daemon, route, text_of(route, "prefill", stream, LONG), stream=stream) as connection:
        assert not stream or headers_came(connection)  # at once, while the prompt is computed
        assert eventually(lambda: stat(daemon, "running") == 1, 30)
    assert eventually(daemon.is_at_rest, 10)
    assert stat(daemon, "prefilled") - before < 2500


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("route", ROUTES)
def test_hang_up_in_decode_ends_it_where_it_is(daemon: Daemon, route: str, stream: bool) -> None:
    before = stat(daemon, "completion_tokens")
    with sent(daemon, route, text_of(route, "decode", stream, STORY), stream=stream):
        assert eventually(lambda: stat(daemon, "completion_tokens") - before > 8, 60)
    assert eventually(daemon.is_at_rest, 10)
    assert stat(daemon, "completion_tokens") - before < CTX / 2


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("route", ROUTES)
def test_hang_up_in_the_queue_leaves_it_and_what_runs_alone(daemon: Daemon, route: str, stream: bool) -> None:
    with sent(daemon, "/completion", text_of(route, "runs", stream, "Once upon a time"), stream=True):
        assert eventually(lambda: stat(daemon, "running") == 1, 30)
        with sent(daemon, route, text_of(route, "waits", stream, "Hi"), stream=stream) as connection:
            assert not stream or headers_came(connection)  # at once, while it waits
            assert eventually(lambda: stat(daemon, "waiting") == 1, 30)
        assert eventually(lambda: stat(daemon, "waiting") == 0, 10)
        assert stat(daemon, "running") == 1
    assert eventually(daemon.is_at_rest, 10)
