"""The logs of real processes: a request's id in all three, what people send and get in none."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llmrun.config import DEFAULT_MODEL
from tests.real.daemons import Daemon, eventually

pytestmark = pytest.mark.real

CHAT = "/v1/chat/completions"
SECRET = "Mellon-7315"


@pytest.fixture
def log_file(tmp_path: Path) -> Path:
    return tmp_path / "daemon.log"


@pytest.fixture
def logging_daemon(home: Path, log_file: Path) -> Iterator[Daemon]:
    with log_file.open("wb") as stderr:
        running = Daemon(home, stderr=stderr, LLMRUN_CTX="1024", LLMRUN_LOG_FORMAT="json")
        yield running
        running.close()


def records(text: str) -> list[dict[str, Any]]:
    """Every line, each of which is a JSON object."""
    return [json.loads(line) for line in text.splitlines()]


def test_one_request_has_its_id_in_the_command_the_daemon_and_the_runner(
    logging_daemon: Daemon, log_file: Path
) -> None:
    done = logging_daemon.run("--debug", "run", DEFAULT_MODEL, "Hi", "--max-tokens", "3")
    assert done.returncode == 0
    asked = [told for told in records(done.stderr.decode()) if told.get("asked", "").startswith("POST")]
    ids = {told["request"] for told in asked}
    assert len(ids) == 1

    def loggers() -> set[str]:
        return {told["logger"] for told in records(log_file.read_text()) if told.get("request") in ids}

    wanted = {"llmrun.daemon.service", f"llmrun.runner.{DEFAULT_MODEL}"}
    assert eventually(lambda: wanted <= loggers(), 5.0), loggers()


def test_runner_that_dies_leaves_the_ids_of_what_it_had_begun(logging_daemon: Daemon, log_file: Path) -> None:
    body = {"model": DEFAULT_MODEL, "prompt": "Hi", "max_tokens": 900, "ignore_eos": True, "stream": True}
    with logging_daemon.http.stream("POST", "/v1/completions", json=body) as reply:
        pieces, came = reply.iter_bytes(), b""
        while b"data:" not in came:  # a comment may come before, while the model loads
            came += next(pieces)
        os.kill(logging_daemon.runner().pid, signal.SIGKILL)
        assert b"runner_died" in b"".join(pieces)
    request = reply.headers["x-request-id"]
    told = [told for told in records(log_file.read_text()) if told.get("request") == request]
    assert f"llmrun.runner.{DEFAULT_MODEL}" in {each["logger"] for each in told}
    assert {"runner_died"} == {each["outcome"] for each in told if "outcome" in each}


def test_prompts_and_answers_are_in_no_line_however_a_request_ends(
    logging_daemon: Daemon, log_file: Path
) -> None:
    http = logging_daemon.http
    user = {"role": "user", "content": f"Say {SECRET} again and again."}
    tool = {"type": "function", "function": {"name": "look", "description": SECRET, "parameters": {}}}
    chat = {"model": DEFAULT_MODEL, "messages": [user], "max_tokens": 40, "temperature": 0}
    said = http.post(CHAT, json=chat).json()["choices"][0]["message"]["content"]
    endings = [
        http.post(CHAT, json={**chat, "stream": True}),
        http.post(CHAT, json={**chat, "tools": [tool], "tool_choice": "required"}),
        http.post(CHAT, json={**chat, "messages": [{"role": SECRET, "content": SECRET}]}),
        http.post(CHAT, json={**chat, "messages": [user] * 500}),
        http.post(CHAT, json={**chat, "chat_template_kwargs": {"messages": SECRET}}),
        http.post(CHAT, json={**chat, "response_format": {"type": "json_schema", "json_schema": SECRET}}),
        http.post("/v1/completions", json={"model": DEFAULT_MODEL, "prompt": SECRET, "grammar": SECRET}),
        http.post("/v1/completions", json={"model": SECRET, "prompt": SECRET}),
        http.post("/v1/embeddings", json={"model": DEFAULT_MODEL, "input": [SECRET] * 3}),
        http.post("/api/generate", json={"model": DEFAULT_MODEL, "prompt": SECRET, "stream": False}),
        http.post("/tokenize", json={"model": DEFAULT_MODEL, "content": SECRET}),
        http.post(CHAT, content=f'{{"messages": "{SECRET}'.encode()),
        http.post(f"/{SECRET}", json={"prompt": SECRET}),
    ]
    statuses = [reply.status_code for reply in endings]
    assert {200, 400, 404} <= set(statuses)
    assert not [status for status in statuses if status >= 500]
    ids = {reply.headers["x-request-id"] for reply in endings}

    def told() -> set[str]:
        return {each.get("request", "") for each in records(log_file.read_text())}

    assert eventually(lambda: ids <= told(), 5.0)
    text = log_file.read_text().replace(f"POST /{SECRET}", "")  # addresses are logged
    assert SECRET not in text
    assert said[:20] not in text
