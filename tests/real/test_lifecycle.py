"""How a daemon ends, by force and by request, and what it leaves. Each test has a daemon of its own."""

from __future__ import annotations

import json
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from llmrun.config import DEFAULT_MODEL
from tests.real.daemons import Daemon, eventually, has_ended

pytestmark = pytest.mark.real

ENDLESS = {
    "model": DEFAULT_MODEL,
    "prompt": "Once upon a time",
    "max_tokens": 1900,
    "stream": True,
    "logit_bias": {"0": -100, "2": -100},
}


def test_daemon_killed_leaves_no_runner_and_the_next_run_works(home: Path) -> None:
    first = Daemon(home, LLMRUN_CTX="512")
    first.http.post("/v1/completions", json={**ENDLESS, "stream": False, "max_tokens": 2})
    runner = first.runner()
    os.kill(first.process.pid, signal.SIGKILL)
    first.process.communicate()
    first.http.close()
    assert eventually(lambda: has_ended(runner), 1.0)
    try:
        again = first.run("run", DEFAULT_MODEL, "Say hi", "--max-tokens", "4")
        assert again.returncode == 0, again.stderr.decode()
        assert again.stdout.strip()
    finally:
        assert first.run("stop", "--daemon").returncode == 0


def test_daemon_ended_by_sigterm_tells_its_streams_and_leaves_nothing(home: Path) -> None:
    running = Daemon(home, LLMRUN_CTX="2048")
    errors: list[object] = []

    def listen() -> None:
        with running.http.stream("POST", "/v1/completions", json=ENDLESS) as reply:
            lines = [line for line in reply.iter_lines() if line.startswith("data: {")]
        events = [json.loads(line.removeprefix("data: ")) for line in lines]
        errors.extend(event["error"] for event in events if "error" in event)

    running.http.post("/v1/completions", json={**ENDLESS, "stream": False, "max_tokens": 2})
    listener = threading.Thread(target=listen)
    listener.start()
    assert eventually(lambda: running.loaded()[0]["in_flight"] == 1, 5)
    running.close()
    listener.join(10)
    assert errors
    assert not (home / "state" / "daemon.json").exists()


def test_four_answers_that_outgrow_the_cells_together_all_finish(home: Path) -> None:
    running = Daemon(home, LLMRUN_CTX="512")

    def ask(i: int) -> dict[str, object]:
        prompt = f"Story {i}: " + " ".join(f"word{i}" for _ in range(40))
        body = {**ENDLESS, "stream": False, "prompt": prompt, "max_tokens": 100}
        reply = running.http.post("/v1/completions", json=body)
        assert reply.status_code == 200, reply.text
        return dict(reply.json()["usage"])

    try:
        with ThreadPoolExecutor(4) as pool:
            usages = list(pool.map(ask, range(4)))
        assert sum(usage["total_tokens"] for usage in usages) > 512  # type: ignore[misc]
        assert [usage["completion_tokens"] for usage in usages] == [100] * 4
        assert eventually(running.is_at_rest, 1.0)
    finally:
        running.close()
