"""A runner that is stuck. Nobody computes for half a minute: with a home of its own, others may meanwhile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmrun.config import DEFAULT_MODEL, Paths
from llmrun.store import Store
from tests.real.daemons import Daemon, eventually, has_ended
from tests.support.tiny import write_llama

pytestmark = pytest.mark.real

SHORT = {"model": DEFAULT_MODEL, "prompt": "Hi", "max_tokens": 2}
ENDLESS = {"model": DEFAULT_MODEL, "prompt": "Once upon a time", "max_tokens": 1900, "stream": True,
           "ignore_eos": True}  # fmt: skip


def test_runner_that_is_stopped_ends_its_stream_and_holds_up_no_other_model(
    model_path: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    Store(Paths.find({"LLMRUN_HOME": str(home)})).copy(str(model_path), DEFAULT_MODEL)
    tiny = str(write_llama(tmp_path / "tiny.gguf"))
    running = Daemon(home, LLMRUN_CTX="2048")
    try:
        with running.http.stream("POST", "/v1/completions", json=ENDLESS, timeout=120) as reply:
            lines = (line for line in reply.iter_lines() if line.startswith("data: {"))
            next(lines)
            runner = running.runner()
            runner.suspend()
            other = running.http.post("/v1/completions", json={**SHORT, "model": tiny})
            assert other.status_code == 200
            last = json.loads(list(lines)[-1].removeprefix("data: "))
        error = last["error"]
        assert error["code"] == "runner_died"
        assert "no sign of life" in error["message"]
        assert eventually(lambda: has_ended(runner), 10)
        assert eventually(lambda: running.http.post("/v1/completions", json=SHORT).status_code == 200, 30)
    finally:
        running.close()
