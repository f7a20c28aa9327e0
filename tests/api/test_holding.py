"""Many large bodies at once, over real sockets."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from llmrun.api import holding
from tests.api.scripted import MODEL, ScriptedService
from tests.api.server import serving

LARGE = b'{"model": "%s", "prompt": "%s"}' % (MODEL.encode(), b"x" * 200_000)


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A daemon with room for two large bodies and a bit."""
    monkeypatch.setattr(holding, "MAX_HELD", 500_000)
    with serving(ScriptedService()) as running:
        yield running


def all_but_the_last_byte(url: str) -> socket.socket:
    parts = urlsplit(url)
    client = socket.create_connection((parts.hostname or "", parts.port or 0), timeout=10)
    head = b"POST /v1/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    client.sendall(head + b"content-length: %d\r\n\r\n" % len(LARGE) + LARGE[:-1])
    return client


def large(url: str) -> httpx.Response:
    headers = {"content-type": "application/json"}
    return httpx.post(f"{url}/v1/completions", content=LARGE, headers=headers, timeout=10)


def until(status: int, ask: Callable[[], httpx.Response]) -> httpx.Response:
    """The first reply of that status, within ten seconds."""
    began = time.monotonic()
    while (reply := ask()).status_code != status:
        assert time.monotonic() - began < 10
        time.sleep(0.02)
    return reply


def test_large_bodies_past_the_room_are_503_and_small_ones_pass(url: str) -> None:
    held = [all_but_the_last_byte(url) for _ in range(2)]
    refused = until(503, lambda: large(url))  # once they came
    assert refused.headers["retry-after"] == "2"
    small = httpx.post(f"{url}/v1/completions", json={"model": MODEL, "prompt": "hi"}, timeout=10)
    assert small.status_code == 200
    for client in held:
        client.sendall(LARGE[-1:])
        assert client.recv(15) == b"HTTP/1.1 200 OK"
        client.close()
    assert large(url).status_code == 200


def test_room_of_bodies_comes_back_however_their_requests_end(url: str) -> None:
    for _ in range(5):
        for client in [all_but_the_last_byte(url) for _ in range(2)]:
            client.close()
        time.sleep(0.05)
    until(200, lambda: large(url))  # once they are gone
    for _ in range(5):
        wrong = httpx.post(
            f"{url}/v1/completions", content=LARGE[:-1], headers={"content-type": "application/json"}
        )
        assert wrong.status_code == 400
    assert large(url).status_code == 200
