"""What the daemon does when a runner, the daemon itself or a client goes away."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import psutil
import pytest

from llmrun.config import DEFAULT_MODEL
from tests.real.daemons import COMMAND, Daemon, eventually

pytestmark = pytest.mark.real

ENDLESS = {"model": DEFAULT_MODEL, "prompt": "Once upon a time", "max_tokens": 1900, "stream": True,
           "logit_bias": {"0": -100, "2": -100}}  # fmt: skip
LONG = "The cat sat on the mat and then it went away. " * 140


def _events(reply: httpx.Response) -> Iterator[dict[str, object]]:
    for line in reply.iter_lines():
        if line.startswith("data: {"):
            yield json.loads(line.removeprefix("data: "))


def _short(daemon: Daemon) -> httpx.Response:
    return daemon.http.post("/v1/completions", json={"model": DEFAULT_MODEL, "prompt": "Hi", "max_tokens": 2})


def test_runner_killed_in_a_stream_is_a_clear_error_and_the_next_request_works(daemon: Daemon) -> None:
    with daemon.http.stream("POST", "/v1/completions", json=ENDLESS) as reply:
        events = _events(reply)
        next(events)
        daemon.runner().kill()
        last = list(events)[-1]
    error = last["error"]
    assert isinstance(error, dict)
    assert error["code"] == "runner_died"
    assert "SIGKILL" in error["message"]
    assert daemon.http.get("/health").json()["status"] == "ok"
    assert _short(daemon).status_code == 200


def test_runner_killed_before_the_first_byte_is_a_500(daemon: Daemon) -> None:
    _short(daemon)
    runner = daemon.runner()
    body = {**ENDLESS, "stream": False}
    with ThreadPoolExecutor(1) as pool:
        reply = pool.submit(daemon.http.post, "/v1/completions", json=body)
        assert eventually(lambda: daemon.loaded()[0]["in_flight"] == 1, 5)
        runner.kill()
        assert reply.result(30).status_code == 500
        assert reply.result().json()["error"]["code"] == "runner_died"


def test_client_gone_in_decode_leaves_no_running_request_within_a_second(daemon: Daemon) -> None:
    _short(daemon)
    with daemon.http.stream("POST", "/v1/completions", json=ENDLESS) as reply:
        events = _events(reply)  # kept: collecting it would close the connection
        next(events)
        assert not daemon.is_at_rest()
    assert eventually(daemon.is_at_rest, 1.0)


@pytest.mark.parametrize("stream", [True, False])
def test_client_gone_in_prefill_leaves_no_running_request_within_a_second(
    daemon: Daemon, stream: bool
) -> None:
    _short(daemon)
    # Another beginning each time, or the prompt would come from the cache.
    body = {"model": DEFAULT_MODEL, "prompt": f"{os.urandom(4).hex()} {LONG}", "stream": stream}
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{daemon.url}/v1/completions", json=body, timeout=httpx.Timeout(5, read=0.15))
    assert eventually(daemon.is_at_rest, 1.0)
    assert _short(daemon).status_code == 200


def test_four_first_requests_at_once_load_one_runner(daemon: Daemon) -> None:
    assert daemon.run("stop", DEFAULT_MODEL).returncode == 0
    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda _: _short(daemon).status_code, range(4)))
    assert replies == [200] * 4
    children = psutil.Process(daemon.process.pid).children()
    assert len(children) == 1


def test_second_daemon_of_one_home_names_the_first(daemon: Daemon) -> None:
    second = subprocess.run(
        [*COMMAND, "serve", "--port", "0"], env=daemon.env, capture_output=True, timeout=30
    )
    assert second.returncode == 1
    assert str(daemon.process.pid) in second.stderr.decode()
