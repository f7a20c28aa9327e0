"""Requests drawn from the project's own OpenAPI, right and wrong ones, against a real daemon: whatever is
asked, it answers with a status of its own choosing and lives on.

`LLMRUN_TEST_EXAMPLES` says how many requests are drawn for each operation.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode

from llmrun.api.app import create_app
from llmrun.config import Paths, Settings
from llmrun.store import Store
from llmrun.store.modelfile import parse_modelfile
from tests.api.scripted import ScriptedService
from tests.real.daemons import Daemon, eventually
from tests.support.tiny import write_llama

pytestmark = pytest.mark.real

MODEL = "tiny:1m"
EXAMPLES = int(os.environ.get("LLMRUN_TEST_EXAMPLES", "8"))
# Not drawn: it ends the daemon. Its refusals are in tests/api/test_permits.py.
LEFT_OUT = frozenset({"/llmrun/shutdown"})
# What a drawn body is given in place of its own, so that its options reach an engine.
WORKING: dict[str, Any] = {
    "model": MODEL,
    "messages": [{"role": "user", "content": "hi"}],
    "prompt": "hi",
    "input": "hi",
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Over a home of its own with a tiny model: requests pull, copy and remove."""
    home = tmp_path_factory.mktemp("home")
    weights = write_llama(home / "tiny.gguf")
    store = Store(Paths.find({"LLMRUN_HOME": str(home)}))
    store.create(MODEL, parse_modelfile(f"FROM {weights}"))
    running = Daemon(home, LLMRUN_OFFLINE="1", LLMRUN_TIME_LIMIT="500ms", LLMRUN_CTX="256")
    yield running
    running.close()


SCHEMA = schemathesis.openapi.from_dict(create_app(ScriptedService(), Settings(), lambda: None).openapi())
OPERATIONS = {
    f"{operation.method.upper()} {operation.path}": operation
    for operation in (result.ok() for result in SCHEMA.get_all_operations())
    if operation.path not in LEFT_OUT
}


def modest(body: Any) -> Any:
    """`body`, its context not one of gigabytes: that is tried, and takes them from the machine."""
    options = body.get("options") if isinstance(body, dict) else None
    ctx = options.get("num_ctx") if isinstance(options, dict) else None
    if type(ctx) is not int or not 2**13 < ctx < 2**29:
        return body
    return {**body, "options": {**options, "num_ctx": 2**13}}


def working(body: Any) -> Any:
    """`body` with a model and a prompt that are there."""
    return (
        {**body, **{name: WORKING[name] for name in body.keys() & WORKING}}
        if isinstance(body, dict)
        else body
    )


def test_daemon_serves_this_very_description(daemon: Daemon) -> None:
    assert daemon.http.get("/openapi.json").json() == SCHEMA.raw_schema


@pytest.mark.parametrize("mode", list(GenerationMode))
@pytest.mark.parametrize("name", OPERATIONS)
def test_any_request_gets_an_answer_and_no_server_error(
    daemon: Daemon, name: str, mode: GenerationMode
) -> None:
    operation = OPERATIONS[name]
    if mode is GenerationMode.NEGATIVE and not (list(operation.body) or list(operation.query)):
        pytest.skip("there is nothing to get wrong")

    @seed(7)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(operation.as_strategy(generation_mode=mode), st.integers(0, 3))
    def ask(case: Case, chance: int) -> None:
        if mode is GenerationMode.POSITIVE and chance and operation.path != "/api/delete":
            case.body = working(case.body)
        case.body = modest(case.body)
        answer = case.call(base_url=daemon.url, timeout=30)
        assert answer.status_code < 500, (answer.status_code, answer.content[:300], case.body)
        assert answer.headers["x-request-id"]
        if answer.status_code >= 400 and name.partition(" ")[0] != "HEAD":
            assert answer.json()["error"]

    ask()


def test_context_beyond_all_memory_is_a_400_and_unloads_nobody(daemon: Daemon) -> None:
    asked = {"model": MODEL, "prompt": "hi", "stream": False, "options": {"num_predict": 1}}
    assert daemon.http.post("/api/generate", json=asked).status_code == 200
    before = daemon.loaded()[0]["pid"]
    for _ in range(3):
        refused = daemon.http.post("/api/generate", json={**asked, "options": {"num_ctx": 2**31 - 1}})
        assert refused.status_code == 400
        assert "2147483647 tokens needs" in refused.json()["error"]
    assert daemon.http.post("/api/generate", json=asked).status_code == 200
    assert daemon.loaded()[0]["pid"] == before


def test_daemon_is_at_rest_when_all_was_asked(daemon: Daemon) -> None:
    assert eventually(daemon.is_at_rest, 10.0)
    asked = {"model": MODEL, "prompt": "hi", "max_tokens": 2}
    assert daemon.http.post("/v1/completions", json=asked).status_code == 200
