"""How a daemon ends, by force and by request, and what it leaves. Each test has a daemon of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx
import psutil
import pytest

from llmrun.config import DEFAULT_MODEL, Paths, Settings
from llmrun.daemon.process import Limits
from llmrun.daemon.service import Service
from llmrun.daemon.vitals import Bounds
from llmrun.store import Store
from llmrun.types import Event, Failed, Finished, GenerateRequest, Options
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
    assert eventually(lambda: has_ended(runner), 10.0)
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
        asked = {**ENDLESS, "max_tokens": 100_000, "context_overflow": "shift"}  # outlasts what it may go on
        with running.http.stream("POST", "/v1/completions", json=asked) as reply:
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
        assert eventually(running.is_at_rest, 10.0)
    finally:
        running.close()


def test_runner_that_is_stopped_is_found_killed_and_replaced(home: Path) -> None:
    """SIGSTOP: with the real runner, and less patience than a user's daemon has."""
    limits = Limits(bounds=Bounds(quiet=0.5, silence=2.0))
    store = Store(Paths.find({"LLMRUN_HOME": str(home)}))

    async def story() -> None:
        service = Service(store, Settings(ctx=512), limits=limits)

        def ask(id: str, tokens: int) -> AsyncGenerator[Event, None]:
            options = Options(max_tokens=tokens, ignore_eos=True)
            return service.ask(GenerateRequest(id=id, model=DEFAULT_MODEL, prompt="Once", options=options))

        try:
            events = ask("stopped", 400)
            await anext(events)
            (loaded,) = service.loaded()
            assert loaded.pid is not None
            os.kill(loaded.pid, signal.SIGSTOP)
            *_, last = [event async for event in events]
            assert isinstance(last, Failed)
            assert last.error.code == "runner_died"
            assert "no sign of life" in last.error.message
            *_, last = [event async for event in ask("next", 2)]
            assert isinstance(last, Finished)
            assert not psutil.pid_exists(loaded.pid)
        finally:
            await service.close()

    asyncio.run(asyncio.wait_for(story(), 60))


def test_daemon_killed_while_it_shuts_down_leaves_nothing(home: Path) -> None:
    running = Daemon(home, LLMRUN_CTX="2048")
    running.http.post("/v1/completions", json={**ENDLESS, "stream": False, "max_tokens": 2})
    runner = running.runner()
    with (
        suppress(httpx.TransportError),
        running.http.stream("POST", "/v1/completions", json=ENDLESS) as reply,
    ):
        next(reply.iter_lines())
        running.process.terminate()  # it drains: the stream still runs
        assert running.process.poll() is None
        running.process.kill()
        running.process.communicate()
    running.http.close()
    assert eventually(lambda: has_ended(runner), 10.0)
    Daemon(home).close()
