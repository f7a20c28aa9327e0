from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from llmrun.api import delivery
from llmrun.api.app import create_app
from llmrun.config import Settings
from llmrun.errors import (
    CONFLICT,
    CONTEXT_LENGTH,
    DOWNLOAD,
    OVERLOADED,
    RUNNER_DIED,
    UNKNOWN_MODEL,
    LlmrunError,
)
from llmrun.store import PullProgress
from llmrun.types import Event, Failed, GenerateRequest, Started, Text
from tests.api.asgi import Exchange
from tests.api.openai.test_models import stored
from tests.api.scripted import MODEL, ScriptedService, fetched
from tests.api.test_control import running
from tests.support.tiny import write_llama

GENERATE, CHAT = "/api/generate", "/api/chat"


@pytest.fixture(autouse=True)
def _one_model(service: ScriptedService) -> None:
    service.stored = [stored(MODEL)]


def ask(path: str, **fields: Any) -> dict[str, Any]:
    what = {"prompt": "Hi"} if path == GENERATE else {"messages": [{"role": "user", "content": "Hi"}]}
    return {"model": MODEL, **what, **fields}


def lines(text: str) -> list[dict[str, Any]]:
    assert text.endswith("\n")
    return [json.loads(part) for part in text.splitlines()]


def text_of(reply: dict[str, Any]) -> str:
    return str(reply["response"] if "response" in reply else reply["message"]["content"])


@pytest.mark.parametrize("path", [GENERATE, CHAT])
def test_streams_lines_unless_told_otherwise(http: TestClient, path: str) -> None:
    response = http.post(path, json=ask(path))
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/x-ndjson"
    *pieces, last = lines(response.text)
    assert "".join(map(text_of, pieces)) == "Hello wörld"
    assert (last["done"], last["done_reason"], last["eval_count"]) == (True, "stop", 2)
    whole = http.post(path, json=ask(path, stream=False))
    assert whole.headers["content-type"] == "application/json"
    assert text_of(whole.json()) == "Hello wörld"
    assert whole.json()["model"] == MODEL


@pytest.mark.parametrize("path", [GENERATE, CHAT])
@pytest.mark.parametrize("stream", [False, True])
def test_unknown_model_is_404_with_the_pull_command(http: TestClient, path: str, stream: bool) -> None:
    response = http.post(path, json={**ask(path, stream=stream), "model": "nobody:1b"})
    assert response.status_code == 404
    assert set(response.json()) == {"error"}
    assert "not found" in response.json()["error"]
    assert "llmrun pull nobody:1b" in response.json()["error"]


@pytest.mark.parametrize("path", [GENERATE, CHAT])
@pytest.mark.parametrize("stream", [False, True])
def test_prompt_too_long_is_400_with_both_numbers(
    http: TestClient, service: ScriptedService, path: str, stream: bool
) -> None:
    async def script(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        yield Failed(LlmrunError(CONTEXT_LENGTH, "the prompt has 900 tokens, the context 512").info())

    service.script = script
    response = http.post(path, json=ask(path, stream=stream))
    assert response.status_code == 400
    assert "900" in response.json()["error"]
    assert "512" in response.json()["error"]


def test_full_queue_is_503_with_retry_after(http: TestClient, service: ScriptedService) -> None:
    async def script(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        raise LlmrunError(OVERLOADED, "512 requests wait already")
        yield

    service.script = script
    response = http.post(CHAT, json=ask(CHAT))
    assert response.status_code == 503
    assert response.headers["retry-after"] == "1"


@pytest.mark.parametrize("path", [GENERATE, CHAT])
def test_runner_dies_midway_the_stream_ends_in_an_error_line(
    http: TestClient, service: ScriptedService, path: str
) -> None:
    async def script(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        yield Started(5, 1)
        yield Text(0, "Hel")
        yield Failed(LlmrunError(RUNNER_DIED, "the runner was killed by signal 9").info())

    service.script = script
    response = http.post(path, json=ask(path))
    assert response.status_code == 200
    first, last = lines(response.text)
    assert text_of(first) == "Hel"
    assert set(last) == {"error"}
    assert "signal 9" in last["error"]
    assert http.post(path, json=ask(path, stream=False)).status_code == 500


def test_quiet_stream_sends_lines_that_say_nothing(
    service: ScriptedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        await asyncio.Event().wait()
        yield Started(1, 1)

    async def work() -> None:
        monkeypatch.setattr(delivery, "GRACE", 0.01)
        monkeypatch.setattr(delivery, "HEARTBEAT", 0.01)
        service.script = never
        exchange = Exchange(create_app(service, Settings(), lambda: None), GENERATE, ask(GENERATE))
        assert await exchange.status() == 200
        for _ in range(3):
            (beat,) = lines((await exchange.piece()).decode())
            assert (beat["response"], beat["done"]) == ("", False)
        assert not service.ended.is_set()
        exchange.hang_up()
        await service.ended.wait()
        await exchange.task

    asyncio.run(asyncio.wait_for(work(), 10))


@pytest.mark.parametrize(
    ("path", "empty"), [(GENERATE, {}), (GENERATE, {"prompt": ""}), (CHAT, {}), (CHAT, {"messages": []})]
)
def test_nothing_to_answer_loads_the_model(
    http: TestClient, service: ScriptedService, path: str, empty: dict[str, Any]
) -> None:
    asked = {"model": MODEL, "keep_alive": "10m", "options": {"num_ctx": 64}, **empty}
    reply = http.post(path, json=asked).json()
    assert (reply["done"], reply["done_reason"], text_of(reply)) == (True, "load", "")
    (wish,) = service.loads
    assert (wish.model, wish.keep_alive, wish.options.ctx) == (MODEL, 600.0, 64)
    assert service.asked == []
    assert http.post(path, json={**asked, "model": "nobody"}).status_code == 404


@pytest.mark.parametrize("path", [GENERATE, CHAT])
@pytest.mark.parametrize("zero", [0, "0", "0s"])
def test_nothing_to_answer_and_no_time_to_stay_unloads_the_model(
    http: TestClient, service: ScriptedService, path: str, zero: object
) -> None:
    reply = http.post(path, json={"model": MODEL, "keep_alive": zero}).json()
    assert (reply["done"], reply["done_reason"]) == (True, "unload")
    assert service.let_gone == [MODEL]
    assert service.loads == []


def test_latest_is_the_name_itself(http: TestClient, service: ScriptedService) -> None:
    service.stored.append(stored("mine"))
    assert http.post("/api/show", json={"model": "mine:latests"}).status_code == 404
    assert http.request("DELETE", "/api/delete", json={"model": "mine:latest"}).status_code == 200
    assert service.removed == ["mine"]
    response = http.post("/api/show", json={"model": "mine:latest"})
    assert response.status_code == 404
    assert "'mine:latest'" in response.json()["error"]


def test_curl_without_a_content_type_is_read(http: TestClient) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    content = json.dumps(ask(GENERATE, stream=False)).encode()
    assert http.post(GENERATE, content=content, headers=form).status_code == 200
    assert http.post(GENERATE, content=content).status_code == 200
    assert http.request("DELETE", "/api/delete", content=json.dumps({"model": MODEL})).status_code == 200


@pytest.mark.parametrize("name", ["origin", "sec-fetch-site", "referer"])
@pytest.mark.parametrize("content_type", ["application/x-www-form-urlencoded", "text/plain"])
def test_what_a_web_page_could_send_unasked_is_not_read(
    http: TestClient, service: ScriptedService, name: str, content_type: str
) -> None:
    headers = {"content-type": content_type, name: "http://localhost:3000"}
    response = http.post(GENERATE, content=json.dumps(ask(GENERATE)), headers=headers)
    assert response.status_code == 415
    assert set(response.json()) == {"error"}
    assert service.asked == []


@pytest.mark.parametrize("content", [b"not json", b"", b"[]", b"{}", b'{"model": ""}'])
@pytest.mark.parametrize("path", [GENERATE, CHAT, "/api/show", "/api/pull", "/api/copy"])
def test_bad_body_is_400_in_ollamas_shape(http: TestClient, path: str, content: bytes) -> None:
    response = http.post(path, content=content)
    assert response.status_code == 400
    assert set(response.json()) == {"error"}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("POST", "/api/generat", 404), ("GET", GENERATE, 405), ("POST", "/api/push", 404)],
)
def test_unknown_route_says_so_in_ollamas_shape(
    http: TestClient, method: str, path: str, status: int
) -> None:
    response = http.request(method, path, json={})
    assert response.status_code == status
    assert set(response.json()) == {"error"}


def test_version_and_greeting_answer_the_ways_that_clients_ask(http: TestClient) -> None:
    major, minor, _ = map(int, http.get("/api/version").json()["version"].split("."))
    assert (major, minor) >= (0, 6)
    for path in ("/", "/api/version", "/api/tags"):
        assert http.head(path).status_code == 200


def test_tags_lists_what_can_be_used(http: TestClient, service: ScriptedService) -> None:
    service.stored.append(stored("gone:1b", missing=True))
    assert [model["name"] for model in http.get("/api/tags").json()["models"]] == [MODEL]


def test_ps_lists_what_stays(http: TestClient, service: ScriptedService) -> None:
    service.running = [running(), replace(running(), name="leaving", state="stopping")]
    (model,) = http.get("/api/ps").json()["models"]
    assert (model["name"], model["context_length"]) == (MODEL, 2048)
    assert model["details"]["family"] == "llama"


def test_show_reads_the_models_file(http: TestClient, service: ScriptedService, tmp_path: Path) -> None:
    path = write_llama(tmp_path / "tiny.gguf")
    service.stored = [replace(stored(MODEL), path=path)]
    shown = http.post("/api/show", json={"name": MODEL}).json()
    assert "<|im_start|>" in shown["template"]
    assert shown["model_info"]["llama.context_length"] == 512
    assert "tensors" not in shown
    assert http.post("/api/show", json={"model": MODEL, "verbose": True}).json()["tensors"]


def test_copy_gives_a_name(http: TestClient, service: ScriptedService) -> None:
    response = http.post("/api/copy", json={"source": MODEL, "destination": "mine"})
    assert (response.status_code, response.content) == (200, b"")
    assert service.copied == [(MODEL, "mine")]
    assert http.post("/api/copy", json={"source": "nobody", "destination": "mine"}).status_code == 404


def test_delete_forgets_the_model_and_then_is_404(http: TestClient, service: ScriptedService) -> None:
    response = http.request("DELETE", "/api/delete", json={"name": MODEL})
    assert (response.status_code, response.content) == (200, b"")
    assert service.removed == [MODEL]
    assert http.request("DELETE", "/api/delete", json={"name": MODEL}).status_code == 404


def test_pull_streams_its_progress(http: TestClient) -> None:
    response = http.post("/api/pull", json={"model": "new:1b"})
    assert response.headers["content-type"] == "application/x-ndjson"
    moving = {"status": "pulling x.gguf", "digest": "file:x.gguf", "total": 100}
    assert lines(response.text) == [
        {"status": "pulling manifest"},
        {"status": "Q4_0 fits this machine"},
        {**moving, "completed": 50},
        {**moving, "completed": 100},
        {"status": "verifying sha256 digest"},
        {"status": "success"},
    ]


def test_pull_whole_says_success(http: TestClient) -> None:
    assert http.post("/api/pull", json={"name": "new:1b", "stream": False}).json() == {"status": "success"}


@pytest.mark.parametrize("stream", [False, True])
def test_pull_of_what_nobody_has_is_404(http: TestClient, stream: bool) -> None:
    response = http.post("/api/pull", json={"model": "nobody", "stream": stream})
    assert response.status_code == 404
    assert set(response.json()) == {"error"}


def test_pull_of_a_name_that_only_ollama_has_asks_its_registry(
    http: TestClient, service: ScriptedService
) -> None:
    async def registry(reference: str) -> AsyncGenerator[PullProgress, None]:
        if reference not in ("ollama://tinyllama", "ollama://half:1b"):
            raise LlmrunError(UNKNOWN_MODEL, f"there is no model {reference!r}")
        async for step in fetched(reference):
            yield step
        if "half" in reference:
            raise LlmrunError(DOWNLOAD, "the body ended")

    service.pull_script = registry
    assert lines(http.post("/api/pull", json={"model": "tinyllama"}).text)[-1] == {"status": "success"}
    unknown = http.post("/api/pull", json={"model": "tiny", "stream": False})
    assert (unknown.status_code, "'tiny'" in unknown.json()["error"]) == (404, True)
    broken = http.post("/api/pull", json={"model": "half:1b", "stream": False})
    assert (broken.status_code, broken.json()) == (502, {"error": "the body ended"})


def test_pull_that_breaks_ends_in_an_error_line(http: TestClient, service: ScriptedService) -> None:
    async def breaks(reference: str) -> AsyncGenerator[PullProgress, None]:
        async for step in fetched(reference):
            yield step
        raise LlmrunError(CONFLICT, "the disk is full")

    service.pull_script = breaks
    *_, last = lines(http.post("/api/pull", json={"model": "new"}).text)
    assert last == {"error": "the disk is full"}


@pytest.mark.parametrize("stream", [False, True])
def test_pull_whose_client_leaves_is_stopped(service: ScriptedService, stream: bool) -> None:
    async def work() -> None:
        begun, ended = asyncio.Event(), asyncio.Event()

        async def endless(_reference: str) -> AsyncGenerator[PullProgress, None]:
            try:
                yield PullProgress("download", "x.gguf", 1, 2)
                begun.set()
                await asyncio.Event().wait()
            finally:
                ended.set()

        service.pull_script = endless
        app = create_app(service, Settings(), lambda: None)
        exchange = Exchange(app, "/api/pull", {"model": "new", "stream": stream})
        await begun.wait()
        exchange.hang_up()
        await ended.wait()
        await exchange.task

    asyncio.run(asyncio.wait_for(work(), 10))


def test_key_is_wanted_where_one_is_set(service: ScriptedService) -> None:
    app = create_app(service, Settings(api_key="secret"), lambda: None)
    with TestClient(app, base_url="http://127.0.0.1:11435") as client:
        refused = client.get("/api/tags")
        assert (refused.status_code, set(refused.json())) == (401, {"error"})
        assert client.get("/api/tags", headers={"authorization": "Bearer secret"}).status_code == 200


def test_create_streams_its_progress(http: TestClient, service: ScriptedService) -> None:
    response = http.post("/api/create", json={"model": "mine", "from": MODEL, "system": "Be brief."})
    assert response.headers["content-type"] == "application/x-ndjson"
    first, *_, last = lines(response.text)
    assert (first["status"], last["status"]) == ("reading model metadata", "success")
    ((name, modelfile),) = service.created
    assert (name, modelfile.system) == ("mine", "Be brief.")
    whole = http.post("/api/create", json={"model": "mine", "from": MODEL, "stream": False})
    assert whole.json() == {"status": "success"}


def test_create_with_another_number_type_asks_for_it(http: TestClient, service: ScriptedService) -> None:
    for kind in ("q8_0", ""):
        asked = {"model": "mine", "from": MODEL, "quantize": kind, "stream": False}
        assert http.post("/api/create", json=asked).status_code == 200
    assert service.kinds == ["q8_0", None]


def test_create_of_a_blob_uses_its_file(http: TestClient, service: ScriptedService) -> None:
    digest = f"sha256:{'0' * 64}"
    asked = {"model": "mine", "files": {"x.gguf": digest}, "stream": False}
    missing = http.post("/api/create", json=asked)
    assert missing.status_code == 400
    assert digest in missing.json()["error"]
    assert http.head(f"/api/blobs/{digest}").status_code == 404
    assert http.post(f"/api/blobs/{digest}", content=b"GGUF").status_code == 201
    assert http.post(f"/api/blobs/{digest}", content=b"GGUF").status_code == 200
    assert http.head(f"/api/blobs/{digest}").status_code == 200
    assert http.post("/api/create", json=asked).status_code == 200
    ((_, modelfile),) = service.created
    assert str(modelfile.sources[0]) == "/models/blobs/4.gguf"
    over = {"model": "mine", "from": MODEL, "adapters": {"l.gguf": digest}, "stream": False}
    assert http.post("/api/create", json=over).status_code == 200
    assert [str(one) for one in service.created[-1][1].adapters] == ["/models/blobs/4.gguf"]
    over["adapters"] = {"l.gguf": f"sha256:{'1' * 64}"}
    assert "1111" in http.post("/api/create", json=over).json()["error"]


@pytest.mark.parametrize("method", ["HEAD", "POST"])
def test_blob_of_what_is_no_digest_is_400(http: TestClient, method: str) -> None:
    assert http.request(method, "/api/blobs/sha256:..").status_code == 400


@pytest.mark.parametrize(
    ("fields", "field"), [({"from": "No Name"}, "No Name"), ({"files": {"x.bin": "sha256:00"}}, "x.bin")]
)
def test_create_of_nothing_usable_is_400(http: TestClient, fields: dict[str, Any], field: str) -> None:
    response = http.post("/api/create", json={"model": "mine", **fields})
    assert response.status_code == 400
    assert field in response.json()["error"]
