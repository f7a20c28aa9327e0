"""What the daemon does when a runner, the daemon itself or a client goes away."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest

from llmrun.config import DEFAULT_MODEL
from tests.real.daemons import COMMAND, Daemon, eventually, linked_home
from tests.support.tiny import write_llama

pytestmark = pytest.mark.real

ENDLESS = {"model": DEFAULT_MODEL, "prompt": "Once upon a time", "max_tokens": 1900, "stream": True,
           "logit_bias": {"0": -100, "2": -100}}  # fmt: skip
SHORT = {"model": DEFAULT_MODEL, "prompt": "Hi", "max_tokens": 2}
LONG = "The cat sat on the mat and then it went away. " * 140


def _events(reply: httpx.Response) -> Iterator[dict[str, object]]:
    for line in reply.iter_lines():
        if line.startswith("data: {"):
            yield json.loads(line.removeprefix("data: "))


def _short(daemon: Daemon) -> httpx.Response:
    return daemon.http.post("/v1/completions", json=SHORT)


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """Another model, loaded in a moment."""
    return write_llama(tmp_path / "tiny.gguf")


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGABRT, signal.SIGSEGV])
def test_runner_killed_in_a_stream_is_a_clear_error_and_the_next_request_works(
    daemon: Daemon, end: signal.Signals
) -> None:
    with daemon.http.stream("POST", "/v1/completions", json=ENDLESS) as reply:
        events = _events(reply)
        next(events)
        daemon.runner().send_signal(end)
        last = list(events)[-1]
    error = last["error"]
    assert isinstance(error, dict)
    assert error["code"] == "runner_died"
    assert end.name in error["message"]
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


def test_client_gone_in_decode_leaves_no_running_request(daemon: Daemon) -> None:
    _short(daemon)
    with daemon.http.stream("POST", "/v1/completions", json=ENDLESS) as reply:
        events = _events(reply)  # kept: collecting it would close the connection
        next(events)
        assert not daemon.is_at_rest()
    assert eventually(daemon.is_at_rest, 3.0)  # the whole answer takes longer


@pytest.mark.parametrize("stream", [True, False])
def test_client_gone_in_prefill_leaves_no_running_request(daemon: Daemon, stream: bool) -> None:
    _short(daemon)
    # Another beginning each time, or the prompt would come from the cache.
    body = {"model": DEFAULT_MODEL, "prompt": f"{os.urandom(4).hex()} {LONG}", "stream": stream}
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{daemon.url}/v1/completions", json=body, timeout=httpx.Timeout(5, read=0.15))
    assert eventually(daemon.is_at_rest, 3.0)
    assert _short(daemon).status_code == 200


def test_four_first_requests_at_once_load_one_runner(daemon: Daemon) -> None:
    assert daemon.run("stop", DEFAULT_MODEL).returncode == 0
    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda _: _short(daemon).status_code, range(4)))
    assert replies == [200] * 4
    children = psutil.Process(daemon.process.pid).children()
    assert len(children) == 1


def test_runner_that_loads_slowly_holds_up_no_other_model(home: Path, tiny: Path, tmp_path: Path) -> None:
    running = Daemon(linked_home(home, tmp_path / "home"), LLMRUN_CTX="256")
    try:
        with ThreadPoolExecutor(1) as pool:
            slow = pool.submit(_short, running)
            assert eventually(lambda: any(model["pid"] for model in running.loaded()), 20)
            runner = running.runner()
            runner.suspend()
            other = running.http.post("/v1/completions", json={**SHORT, "model": str(tiny)})
            assert other.status_code == 200
            states = {model["name"]: model["state"] for model in running.loaded()}
            assert states == {DEFAULT_MODEL: "loading", str(tiny): "ready"}
            assert not slow.done()
            runner.resume()
            assert slow.result(60).status_code == 200
    finally:
        running.close()


def test_other_model_waits_for_a_stream_where_one_is_the_limit_then_loads(
    home: Path, tiny: Path, tmp_path: Path
) -> None:
    """B72."""
    running = Daemon(linked_home(home, tmp_path / "home"), LLMRUN_CTX="256", LLMRUN_MAX_LOADED="1")
    body = {**ENDLESS, "max_tokens": 100}
    try:
        with (
            ThreadPoolExecutor(1) as pool,
            running.http.stream("POST", "/v1/completions", json=body) as reply,
        ):
            events = _events(reply)
            first = next(events)
            other = pool.submit(
                httpx.post, f"{running.url}/v1/completions", json={**SHORT, "model": str(tiny)}, timeout=60
            )
            assert eventually(lambda: "llmrun_waiting 1.0" in httpx.get(f"{running.url}/metrics").text, 10)
            said = [first, *events]
            reasons = [c["finish_reason"] for e in said for c in e["choices"]]  # type: ignore[attr-defined]
            assert [reason for reason in reasons if reason] == ["length"]
            assert other.result(60).status_code == 200
        assert [model["name"] for model in running.loaded()] == [str(tiny)]
    finally:
        running.close()


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions", "/v1/messages", "/api/chat"])
def test_model_that_is_not_here_is_a_404_and_answered_by_no_other(daemon: Daemon, path: str) -> None:
    """B73: beside one that is loaded."""
    assert _short(daemon).status_code == 200
    served = f'llmrun_requests_total{{model="{DEFAULT_MODEL}",outcome="ok"}} '

    def count() -> list[str]:
        return [line for line in daemon.http.get("/metrics").text.splitlines() if line.startswith(served)]

    before = count()
    body: dict[str, object] = {"model": "smollm2:1.7b-not-here"}
    body |= (
        {"prompt": "Hi"} if path == "/v1/completions" else {"messages": [{"role": "user", "content": "Hi"}]}
    )
    body |= {"max_tokens": 2} if path == "/v1/messages" else {}
    reply = daemon.http.post(path, json=body)
    assert reply.status_code == 404
    assert "smollm2:1.7b-not-here" in reply.text
    assert [model["name"] for model in daemon.loaded()] == [DEFAULT_MODEL]
    assert before
    assert count() == before


def test_model_that_is_here_but_not_loaded_is_loaded_and_answers(daemon: Daemon, tiny: Path) -> None:
    """B73."""
    assert _short(daemon).status_code == 200
    reply = daemon.http.post("/v1/completions", json={**SHORT, "model": str(tiny)})
    assert reply.json()["model"] == str(tiny)
    assert str(tiny) in [model["name"] for model in daemon.loaded()]
    assert daemon.run("stop", str(tiny)).returncode == 0


def test_second_daemon_of_one_home_names_the_first(daemon: Daemon) -> None:
    second = subprocess.run(
        [*COMMAND, "serve", "--port", "0"], env=daemon.env, capture_output=True, timeout=30
    )
    assert second.returncode == 1
    assert str(daemon.process.pid) in second.stderr.decode()
