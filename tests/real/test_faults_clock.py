"""The wall clock of a whole daemon is set a day on and a day back while it works. Nothing that lasts may
change: answers, times, rates, sessions, how long a model stays."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llmrun.access.keyring import Keyring
from llmrun.config import DEFAULT_MODEL, Paths
from tests.real.daemons import Daemon, eventually, linked_home
from tests.support.clock import WallClock

pytestmark = pytest.mark.real

DAY = 86_400
NEAR = 60  # seconds within which two stamps are of the same moment
JUMPS = (DAY, -DAY, 0)
OWNER = "owner"


@pytest.fixture
def clock(tmp_path: Path) -> WallClock:
    try:
        return WallClock(tmp_path)
    except RuntimeError as error:
        pytest.skip(str(error))


@pytest.fixture
def place(home: Path, tmp_path: Path) -> Path:
    return linked_home(home, tmp_path / "home")


@pytest.fixture
def keyed(place: Path, clock: WallClock) -> Iterator[Daemon]:
    running = Daemon(place, LLMRUN_CTX="512", LLMRUN_API_KEY=OWNER, LLMRUN_KEEP_ALIVE="10m", **clock.env)
    running.http.headers["authorization"] = f"Bearer {OWNER}"
    yield running
    running.close()


def said(daemon: Daemon, path: str, **body: object) -> Any:
    reply = daemon.http.post(path, json={"model": DEFAULT_MODEL, **body})
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_clock_that_jumps_changes_no_answer_no_time_and_no_session(keyed: Daemon, clock: WallClock) -> None:
    session = said(keyed, "/v1/responses", input="Remember seven.", max_output_tokens=16)["id"]
    pid = keyed.runner().pid
    body = {"model": DEFAULT_MODEL, "prompt": "Once", "max_tokens": 120, "ignore_eos": True, "stream": True}
    for ahead in JUMPS:
        with keyed.http.stream("POST", "/v1/completions", json=body) as reply:
            lines = reply.iter_lines()
            next(lines)
            clock.ahead(ahead)
            *_, last, done, _ = list(lines)
        assert done == "data: [DONE]", last
        whole = said(keyed, "/v1/completions", prompt="Hi", max_tokens=4)
        assert abs(whole["created"] - time.time() - ahead) < NEAR  # the jump has reached it
        assert all(
            0 <= value < NEAR * 1000 for name, value in whole["timings"].items() if name.endswith("_ms")
        )
        said(keyed, "/v1/responses", input="Which?", previous_response_id=session, max_output_tokens=16)
        (model,) = keyed.loaded()
        assert model["pid"] == pid
        assert 600 - NEAR < model["expires_at"] - time.time() - ahead <= 600 + NEAR


@pytest.mark.parametrize("ahead", [DAY, -DAY])
def test_clock_that_jumps_neither_keeps_a_model_nor_drops_it(
    keyed: Daemon, clock: WallClock, ahead: int
) -> None:
    options = {"num_predict": 2}
    said(keyed, "/api/generate", prompt="Hi", stream=False, keep_alive="2s", options=options)
    clock.ahead(ahead)
    assert [model["state"] for model in keyed.loaded()] == ["ready"]
    assert eventually(lambda: not keyed.loaded(), 20)


def test_clock_that_jumps_neither_fills_nor_empties_a_rate(
    keyed: Daemon, clock: WallClock, place: Path
) -> None:
    key = Keyring.of(Paths.find({"LLMRUN_HOME": str(place)})).create("two", requests_per_minute=2)
    headers = {"authorization": f"Bearer {key}"}

    def asked() -> Any:
        return keyed.http.get("/v1/models", headers=headers)

    assert [asked().status_code for _ in range(3)] == [200, 200, 429]
    for ahead in JUMPS:
        clock.ahead(ahead)
        # By their own clock less than half a minute went by, or the machine is too slow to say anything.
        reply = asked()
        assert json.loads(reply.content)
        assert reply.status_code == 429
        assert 0 < int(reply.headers["retry-after"]) <= 30
