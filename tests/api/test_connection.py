"""Clients that keep a connection without using it, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncGenerator, Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from llmrun.api import body, connection
from llmrun.config import Settings
from llmrun.types import Event, GenerateRequest
from tests.api.scripted import MODEL, ScriptedService, answer
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


def posted(path: str, headers: bytes, body: bytes = b"") -> bytes:
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n".encode()
    return head + headers + b"\r\n" + body


def test_head_in_pieces_behind_a_large_body_is_read(url: str) -> None:
    raw = b'{"model": "%s", "prompt": "%s"}' % (MODEL.encode(), b"x" * 100_000)
    with connected(url) as client:
        client.sendall(posted("/v1/completions", b"content-length: %d\r\n" % len(raw), raw))
        heard = b""
        while b'"usage"' not in heard:
            heard += client.recv(4096)
        client.sendall(HEAD)
        time.sleep(0.1)
        client.sendall(b"\r\n")
        assert client.recv(4096).startswith(b"HTTP/1.1 200 ")


def is_closed_while(client: socket.socket, piece: bytes) -> bool:
    """Whether the other side closes the connection while `piece` is sent again and again."""
    began = time.monotonic()
    try:
        while time.monotonic() - began < 10:
            client.sendall(piece)
            time.sleep(0.001)
    except OSError:
        return True
    return False


CHUNKED = b"transfer-encoding: chunked\r\n"


def test_key_behind_a_body_lets_nobody_in() -> None:
    with serving(ScriptedService(), Settings(api_key="secret")) as url, connected(url) as client:
        trailer = b"2\r\n{}\r\n0\r\nx-api-key: secret\r\nauthorization: Bearer secret\r\n\r\n"
        client.sendall(posted("/v1/completions", CHUNKED, trailer))
        assert client.recv(4096).startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize(
    "piece",
    [b"x-more: " + b"y" * 4000 + b"\r\n", b"y" * 4000, b"1;" + b"y" * 4000],
    ids=["lines", "a line", "a chunk's extension"],
)
def test_trailer_without_end_closes_the_connection(url: str, piece: bytes) -> None:
    begun = b"2\r\n{}\r\n" + (b"" if piece.startswith(b"1;") else b"0\r\nx: ")
    with connected(url) as client:
        client.sendall(posted("/v1/completions", CHUNKED, begun))
        assert is_closed_while(client, piece)


def test_body_that_goes_on_behind_its_answer_closes_the_connection(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.3)
    with connected(url) as client:
        client.sendall(posted("/v1/nowhere", b"content-length: 1000000000\r\n"))
        assert client.recv(4096).startswith(b"HTTP/1.1 404 ")
        assert is_closed_while(client, b"x" * 1000)


async def endless(_: GenerateRequest) -> AsyncGenerator[Event, None]:
    while True:
        await asyncio.sleep(0)
        yield answer("word " * 1000)[2]


def asking_for_a_stream() -> bytes:
    raw = b'{"model": "%s", "prompt": "hi", "stream": true}' % MODEL.encode()
    return posted("/v1/completions", b"content-length: %d\r\n" % len(raw), raw)


def test_client_that_reads_nothing_more_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would hold its model in memory, and all that waits for its room."""
    monkeypatch.setattr(connection, "STALL_SECONDS", 0.2)
    service = ScriptedService(script=endless)
    with serving(service) as url, connected(url) as client:
        client.sendall(asking_for_a_stream())
        assert client.recv(20).startswith(b"HTTP/1.1 200 ")
        began = time.monotonic()
        while not service.ended.is_set():
            assert time.monotonic() - began < 10
            time.sleep(0.02)


def test_client_that_reads_slowly_is_not_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "STALL_SECONDS", 1.5)
    service = ScriptedService(script=endless)
    with serving(service) as url, connected(url) as client:
        client.sendall(asking_for_a_stream())
        began = time.monotonic()
        while time.monotonic() - began < 4:
            assert client.recv(1_000_000)
            time.sleep(0.1)
        assert not service.ended.is_set()


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


OFFER = b"connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n"
HI = b'{"model": "%s", "prompt": "hi"}' % MODEL.encode()


@pytest.mark.parametrize("pause", [0.0, 0.1], ids=["at once", "in pieces"])
@pytest.mark.parametrize("chunked", [False, True])
def test_request_that_offers_another_protocol_keeps_its_body(url: str, chunked: bool, pause: float) -> None:
    """Java's client offers HTTP/2 so. What follows is a request of its own, and nothing else is."""
    if chunked:
        framing, body = CHUNKED, b"%x\r\n%s\r\n0\r\n\r\n" % (len(HI), HI)
    else:
        framing, body = b"content-length: %d\r\n" % len(HI), HI
    with connected(url) as client:
        for _ in range(3):
            client.sendall(posted("/v1/completions", framing + OFFER))
            time.sleep(pause)
            client.sendall(body)
            heard = b""
            while b'"usage"' not in heard:
                piece = client.recv(4096)
                assert piece, heard
                heard += piece
            assert heard.startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize("pause", [0.0, 0.1], ids=["at once", "in pieces"])
def test_body_of_a_request_that_offers_another_protocol_is_no_request(url: str, pause: float) -> None:
    inner = HEAD + b"\r\n"
    with connected(url) as client:
        client.sendall(posted("/v1/nowhere", OFFER + b"content-length: %d\r\n" % len(inner)))
        time.sleep(pause)
        client.sendall(inner)
        client.settimeout(0.5)
        heard = b""
        with contextlib.suppress(TimeoutError):
            while piece := client.recv(4096):
                heard += piece
        assert heard.startswith(b"HTTP/1.1 404 ")
        assert heard.count(b"HTTP/1.1 ") == 1


def test_requests_that_offer_another_protocol_may_follow_each_other_closely(url: str) -> None:
    one = b"GET /health HTTP/1.1\r\n" + b"host: 127.0.0.1\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n"
    with connected(url) as client:
        client.sendall(one * 1500)
        heard = b""
        while heard.count(b"HTTP/1.1 200 OK") < 1500:
            piece = client.recv(65536)
            assert piece
            heard += piece


def test_connections_past_the_limit_are_503_until_others_leave(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MAX_CONNECTIONS", 3)
    held = [connected(url) for _ in range(3)]
    for client in held:
        client.sendall(HEAD + b"\r\n")
        assert client.recv(15) == b"HTTP/1.1 200 OK"
    with connected(url) as refused:
        answer = refused.recv(4096)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 1" in answer
        assert refused.recv(10) == b""
    for client in held:
        client.close()
    began = time.monotonic()  # until the server has seen it
    while (reply := httpx.get(f"{url}/health")).status_code == 503 and time.monotonic() - began < 10:
        time.sleep(0.02)
    assert reply.status_code == 200


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
