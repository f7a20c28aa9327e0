"""Clients that keep a connection without using it, over real sockets."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from llmrun.api import body, connection
from tests.api.scripted import MODEL, ScriptedService
from tests.api.server import serving

HEAD = b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(ScriptedService()) as running:
        yield running


def connected(url: str) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname or "", parts.port or 0), timeout=10)


@pytest.mark.parametrize("said", [b"", HEAD, HEAD[:9]])
def test_head_that_does_not_come_closes_the_connection(
    url: str, monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.2)
    with connected(url) as client:
        client.sendall(said)
        assert client.recv(100) == b""


def test_head_of_a_further_request_has_its_time_too(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.3)
    with connected(url) as client:
        for _ in range(3):
            client.sendall(HEAD + b"\r\n")
            answer = b""
            while not answer.endswith(b"}"):
                answer += client.recv(4096)
            assert answer.startswith(b"HTTP/1.1 200 OK")
            time.sleep(0.15)
        client.sendall(HEAD)
        assert client.recv(100) == b""


def test_head_without_end_is_431(url: str) -> None:
    with connected(url) as client:
        client.sendall(HEAD)
        answer = b""
        for _ in range(200):
            try:
                client.sendall(b"x-more: " + b"y" * 4000 + b"\r\n")
            except OSError:
                break
            client.settimeout(0.01)
            try:
                answer = client.recv(100)
            except TimeoutError:
                continue
            break
        assert answer.startswith(b"HTTP/1.1 431 ")


def test_body_that_does_not_come_is_408(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "BODY_SECONDS", 0.2)
    head = b"POST /v1/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    with connected(url) as client:
        client.sendall(head + b"content-length: 100\r\n\r\n{")
        assert b"408 " in client.recv(4096)


def test_half_open_connections_in_hundreds_leave_the_others_served(url: str) -> None:
    held = [connected(url) for _ in range(300)]
    try:
        for client in held:
            client.sendall(HEAD)
        reply = httpx.post(f"{url}/v1/completions", json={"model": MODEL, "prompt": "hi"}, timeout=20)
        assert reply.status_code == 200
    finally:
        for client in held:
            client.close()


HOST = b"host: 127.0.0.1\r\n"
POST = b"POST /tokenize HTTP/1.1\r\n" + HOST
AMBIGUOUS = {
    "two lengths": POST + b"content-length: 5\r\ncontent-length: 6\r\n\r\nhello",
    "a list of lengths": POST + b"content-length: 5, 5\r\n\r\nhello",
    "a signed length": POST + b"content-length: +5\r\n\r\nhello",
    "a length past all numbers": POST + b"content-length: 99999999999999999999\r\n\r\nhello",
    "length and chunks": POST + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "an unknown coding": POST + b"transfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a coding around chunks": POST + b"transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "a space before the colon": POST + b"transfer-encoding : chunked\r\n\r\n0\r\n\r\n",
    "a folded line": b"GET /health HTTP/1.1\r\n" + HOST + b" evil\r\n\r\n",
    "a zero byte": b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\x00evil\r\n\r\n",
    "bare line feeds": b"GET /health HTTP/1.1\nhost: 127.0.0.1\n\n",
    "a bare carriage return": b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\rx: y\r\n\r\n",
    "a chunk size in hex notation": POST + b"transfer-encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n",
    "another protocol": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a tunnel": b"CONNECT evil.example:443 HTTP/1.1\r\n" + HOST + b"\r\n",
    "an unknown method": b"BREW /health HTTP/1.1\r\n" + HOST + b"\r\n",
}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_request_that_two_programs_may_read_differently_is_refused_and_closed(url: str, name: str) -> None:
    """What follows on such a connection could be anybody's request: it must not be answered."""
    with connected(url) as client:
        client.sendall(AMBIGUOUS[name] + b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n")
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := client.recv(4096):
                answer += piece
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert answer.count(b"HTTP/1.1 ") == 1
