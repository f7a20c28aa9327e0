"""What the daemon's log says of each request: whose it was and how it ended, never what was in it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from llmrun import log
from llmrun.access.gate import Gate
from llmrun.access.keyring import Keyring
from llmrun.api.app import create_app
from llmrun.config import Settings
from tests.api.conftest import BASE
from tests.api.scripted import MODEL, ScriptedService

CHAT = "/v1/chat/completions"
OK = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}

Lines = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def ring(tmp_path: Path) -> Keyring:
    return Keyring(tmp_path / "keys.json")


@pytest.fixture
def http(service: ScriptedService, ring: Keyring) -> Iterator[TestClient]:
    app = create_app(service, Settings(), lambda: None, gate=Gate(None, ring))
    with TestClient(app, base_url=BASE, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lines]:
    """What was logged since it was asked last, at its finest."""
    stream = io.StringIO()
    before = log.ROOT.handlers[:], log.ROOT.level, log.ROOT.propagate
    monkeypatch.setattr("sys.stderr", stream)
    log.setup("DEBUG", "json")

    def since() -> list[dict[str, Any]]:
        text = stream.getvalue()
        stream.seek(0)
        stream.truncate()
        return [json.loads(line) for line in text.splitlines()]

    yield since
    log.ROOT.handlers[:], log.ROOT.propagate = before[0], before[2]
    log.ROOT.setLevel(before[1])


def test_request_that_went_well_is_a_detail(http: TestClient, lines: Lines) -> None:
    reply = http.post(CHAT, json=OK)
    (told,) = lines()
    assert (told["level"], told["request"]) == ("debug", reply.headers["x-request-id"])
    assert (told["asked"], told["status"], told["client"]) == (f"POST {CHAT}", 200, "testclient")
    assert told["message"].startswith(f"POST {CHAT}: 200 after 0.")


def test_refusal_says_why_and_by_whose_key_but_no_secret(
    http: TestClient, lines: Lines, ring: Keyring
) -> None:
    secret = ring.create("guest", models=("other",))
    told = []
    for headers in ({}, {"authorization": "Bearer wr0ng"}, {"authorization": f"Bearer {secret}"}):
        reply = http.post("/llmrun/stop", json={}, headers=headers)
        (line,) = lines()
        assert line["request"] == reply.headers["x-request-id"]
        told.append((line["level"], line["status"], line["error"], line.get("key")))
        assert not any(word in json.dumps(line) for word in ("wr0ng", secret))
    assert told == [
        ("info", 401, "unauthorized", None),
        ("info", 401, "unauthorized", None),
        ("info", 403, "forbidden", "guest"),
    ]


@pytest.mark.parametrize(
    "body",
    [
        {**OK, "messages": [{"role": "user", "content": "diary"}]},
        {**OK, "messages": [{"role": "diary", "content": ""}]},
        {**OK, "stop": ["diary"], "stream": True},
        {**OK, "model": "diary"},
        {**OK, "temperature": "diary"},
        "diary",
    ],
)
def test_what_people_send_is_in_no_line_at_any_level(http: TestClient, lines: Lines, body: Any) -> None:
    http.post(CHAT, json=body)
    assert "diary" not in json.dumps(lines())


def test_path_cannot_write_lines_of_its_own(http: TestClient, lines: Lines) -> None:
    http.get("/v1/models/x%0a%7B%22level%22%3A%22error%22%7D" + "y" * 300)
    (told,) = lines()
    assert told["level"] == "info"
    assert told["message"].startswith(r"GET /v1/models/x\n{")
    assert len(told["asked"]) <= 205
