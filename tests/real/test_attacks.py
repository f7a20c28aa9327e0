"""What clients do to a real daemon by malice or by bad luck. After each: those concerned are told, the others
are served, nothing is left over."""

from __future__ import annotations

import json
import resource
import socket

import psutil
import pytest

from llmrun.config import DEFAULT_MODEL
from tests.real.daemons import Daemon, eventually

pytestmark = pytest.mark.real

TCP_REPAIR = 19  # of Linux; the socket module has no name for it
LONG = {"model": DEFAULT_MODEL, "prompt": "Once upon a time", "max_tokens": 300, "stream": True,
        "ignore_eos": True}  # fmt: skip
SHORT = {"model": DEFAULT_MODEL, "prompt": "Hi", "max_tokens": 2}


def head_and_body(daemon: Daemon, body: dict[str, object]) -> bytes:
    raw = json.dumps(body).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nhost: 127.0.0.1:{daemon.port}\r\ncontent-length: {len(raw)}\r\n"
    return head.encode() + b"content-type: application/json\r\n\r\n" + raw


def connected(daemon: Daemon) -> socket.socket:
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(20)
    client.connect(("127.0.0.1", daemon.port))
    return client


def short(daemon: Daemon) -> int:
    return daemon.http.post("/v1/completions", json=SHORT).status_code


def test_client_that_reads_a_byte_at_a_time_holds_up_nobody(daemon: Daemon) -> None:
    assert short(daemon) == 200
    with connected(daemon) as slow:
        slow.sendall(head_and_body(daemon, LONG))
        said = b"".join(slow.recv(1) for _ in range(20))
        assert said == b"HTTP/1.1 200 OK\r\ndat"
        assert [short(daemon) for _ in range(3)] == [200] * 3
        # The engine does not wait for it either: its answer is made, and kept for it.
        assert eventually(lambda: not daemon.loaded()[0]["stats"]["running"], 60)
        slow.recv(1)
    assert eventually(daemon.is_at_rest, 5.0)


def test_a_thousand_connections_at_once_leave_the_daemon_serving_and_as_it_was(daemon: Daemon) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4096:
        pytest.skip(f"this process may have {hard} files at most")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    assert short(daemon) == 200
    process = psutil.Process(daemon.process.pid)
    before = process.num_fds()
    held = [connected(daemon) for _ in range(1000)]
    try:
        for number, client in enumerate(held):
            client.sendall(b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n" + b"\r\n" * (number % 2))
        answers = [client.recv(15) for client in held[1::2]]
        assert answers == [b"HTTP/1.1 200 OK"] * 500
        assert short(daemon) == 200
    finally:
        for client in held:
            client.close()
    assert eventually(lambda: process.num_fds() <= before, 5.0)


def vanish(client: socket.socket) -> None:
    """Gone without a word, as a machine whose power fails: no packet tells the daemon."""
    try:
        client.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
    except OSError:
        client.close()
        pytest.skip("connections cannot be taken away without a word here")
    client.close()


def test_half_open_connections_hold_nothing_and_nobody(daemon: Daemon) -> None:
    """Clients that vanish: in the head, in the body, before the answer, in the stream."""
    assert short(daemon) == 200
    endless = {**LONG, "max_tokens": 1900}
    for sent in (
        b"POST /v1/completions HTTP/1.1\r\nho",
        head_and_body(daemon, LONG)[:-10],
        head_and_body(daemon, {**LONG, "max_tokens": 40, "stream": False}),
    ):
        client = connected(daemon)
        client.sendall(sent)
        vanish(client)
    client = connected(daemon)
    client.sendall(head_and_body(daemon, endless))
    assert client.recv(15) == b"HTTP/1.1 200 OK"
    vanish(client)
    assert short(daemon) == 200
    assert eventually(daemon.is_at_rest, 20)
    (model,) = daemon.loaded()
    assert not model["stats"]["kv_used"]


def test_garbage_in_place_of_http_is_refused(daemon: Daemon) -> None:
    for garbage in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GARBAGE\r\n\r\n", b"\0" * 5000):
        with connected(daemon) as client:
            client.sendall(garbage)
            assert client.recv(100).startswith((b"HTTP/1.1 400 ", b""))
    smuggled = (
        b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    with connected(daemon) as client:
        client.sendall(smuggled)
        assert client.recv(100).startswith(b"HTTP/1.1 4")
    assert short(daemon) == 200
