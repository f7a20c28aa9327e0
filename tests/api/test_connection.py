"""Clients that keep a connection without using it, over real sockets."""

from __future__ import annotations

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


@pytest.fixture
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
