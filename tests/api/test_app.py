from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from starlette.testclient import TestClient

from llmrun.api.app import create_app
from llmrun.config import Settings
from llmrun.errors import CONTEXT_LENGTH, OVERLOADED, RUNNER_DIED, LlmrunError
from llmrun.types import Event, Failed, GenerateRequest, Started, Text
from tests.api.conftest import BASE
from tests.api.openai.test_models import stored
from tests.api.scripted import MODEL, ScriptedService

CHAT = "/v1/chat/completions"


def ask(**fields: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": [{"role": "user", "content": "Hi"}], **fields}


def test_chat_whole_reply_names_itself_after_the_request(http: TestClient, service: ScriptedService) -> None:
    response = http.post(CHAT, json=ask())
    assert response.status_code == 200
    assert response.json()["choices"][0]["message"]["content"] == "Hello wörld"
    request_id = response.headers["x-request-id"]
    assert service.asked[0].id == request_id
    assert response.json()["id"] == "chatcmpl-" + request_id.removeprefix("req_")


def test_chat_stream_is_server_sent_events(http: TestClient) -> None:
    response = http.post(CHAT, json=ask(stream=True))
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.headers["cache-control"] == "no-cache"
    assert response.text.endswith("data: [DONE]\n\n")


def test_completions_several_prompts_are_several_requests(http: TestClient, service: ScriptedService) -> None:
    asked = {"model": MODEL, "prompt": ["a", "b", "c"], "n": 2}
    choices = http.post("/v1/completions", json=asked).json()["choices"]
    assert [choice["index"] for choice in choices] == [0, 1, 2, 3, 4, 5]
    assert sorted(str(request.prompt) for request in service.asked) == ["a", "b", "c"]


@pytest.mark.parametrize("stream", [False, True])
def test_chat_unknown_model_is_404_with_the_pull_command(http: TestClient, stream: bool) -> None:
    response = http.post(CHAT, json=ask(model="nobody:1b", stream=stream))
    assert response.status_code == 404
    error = response.json()["error"]
    assert error["code"] == "model_not_found"
    assert error["type"] == "invalid_request_error"
    assert "llmrun pull nobody:1b" in error["message"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("raised", [False, True])
def test_chat_prompt_too_long_is_400_with_both_numbers(
    http: TestClient, service: ScriptedService, stream: bool, raised: bool
) -> None:
    error = LlmrunError(
        CONTEXT_LENGTH, "the prompt has 900 tokens, the context 512", prompt_tokens=900, context=512
    )

    async def script(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        if raised:
            raise error
        yield Failed(error.info())

    service.script = script
    response = http.post(CHAT, json=ask(stream=stream))
    assert response.status_code == 400
    assert response.json()["error"] == {
        "message": str(error),
        "type": "invalid_request_error",
        "param": None,
        "code": "context_length_exceeded",
        "n_prompt_tokens": 900,
        "n_ctx": 512,
        "details": {"prompt_tokens": 900, "context": 512},
    }


def test_chat_full_queue_is_503_with_retry_after(http: TestClient, service: ScriptedService) -> None:
    async def script(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        raise LlmrunError(OVERLOADED, "512 requests wait already", retry_after=2.5)
        yield

    service.script = script
    response = http.post(CHAT, json=ask())
    assert response.status_code == 503
    assert response.headers["retry-after"] == "3"
    assert response.json()["error"]["type"] == "server_error"


def test_chat_runner_dies_midway_stream_ends_in_an_error_without_a_finish(
    http: TestClient, service: ScriptedService
) -> None:
    async def script(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        yield Started(5, 1)
        yield Text(0, "Hel")
        yield Failed(LlmrunError(RUNNER_DIED, "the runner was killed by signal 9").info())

    service.script = script
    response = http.post(CHAT, json=ask(stream=True))
    assert response.status_code == 200
    last = response.text.removesuffix("\n\n").rpartition("\n\n")[2]
    assert last.startswith('data: {"error":{"message":"the runner was killed by signal 9')
    assert '"code":"runner_died"' in last
    assert "[DONE]" not in response.text
    assert '"finish_reason":"stop"' not in response.text
    assert http.post(CHAT, json=ask()).status_code == 500


def test_chat_stranger_error_is_500_with_the_request_id_and_no_traceback(
    http: TestClient, service: ScriptedService, caplog: pytest.LogCaptureFixture
) -> None:
    async def script(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        raise ZeroDivisionError("secret detail")
        yield

    service.script = script
    response = http.post(CHAT, json=ask())
    assert response.status_code == 500
    error = response.json()["error"]
    assert error["code"] == "internal_error"
    assert response.headers["x-request-id"] in error["message"]
    assert "secret" not in response.text
    assert "ZeroDivisionError" in caplog.text
    (failure,) = (record for record in caplog.records if record.levelname == "ERROR")
    assert vars(failure)["request"] == response.headers["x-request-id"]


def test_chat_without_memory_in_the_daemon_is_503_with_retry_after(
    http: TestClient, service: ScriptedService, caplog: pytest.LogCaptureFixture
) -> None:
    async def script(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        raise MemoryError
        yield

    service.script = script
    response = http.post(CHAT, json=ask())
    assert (response.status_code, response.headers["retry-after"]) == (503, "5")
    assert response.json()["error"]["code"] == OVERLOADED.code
    assert "memory ran out" in caplog.text
    assert "Traceback" not in caplog.text


def test_chat_answer_without_an_end_is_an_error(http: TestClient, service: ScriptedService) -> None:
    async def script(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        yield Started(5, 1)

    service.script = script
    assert http.post(CHAT, json=ask()).json()["error"]["code"] == "internal_error"


@pytest.mark.parametrize(
    ("content", "content_type", "status"),
    [
        (b"not json", "application/json", 400),
        (b"[" * 50_000, "application/json", 400),
        (b'{"model": "\xff"}', "application/json", 400),
        (b"{}", "application/json", 400),
        (b"{}", "text/plain", 415),
        (b"model=x", "application/x-www-form-urlencoded", 415),
        (b"{}", "", 415),
        (b"{" + b" " * 17 * 2**20 + b"}", "application/json", 413),
    ],
)
def test_chat_bad_body_is_a_4xx_and_the_next_request_works(
    http: TestClient, content: bytes, content_type: str, status: int
) -> None:
    headers = {"content-type": content_type} if content_type else {}
    response = http.post(CHAT, content=content, headers=headers)
    assert response.status_code == status
    assert set(response.json()["error"]) == {"message", "type", "param", "code"}
    assert http.post(CHAT, json=ask()).status_code == 200


def test_chat_body_sent_in_chunks_is_limited_as_well(http: TestClient) -> None:
    chunks = (b" " * 2**20 for _ in range(17))
    response = http.post(CHAT, content=chunks, headers={"content-type": "application/json"})
    assert response.status_code == 413


def test_unknown_route_is_404_that_names_near_ones(http: TestClient) -> None:
    response = http.post("/v1/chat/completion", json={})
    assert response.status_code == 404
    assert "/v1/chat/completions" in response.json()["error"]["message"]
    assert http.get("/health/").status_code == 404


def test_wrong_method_is_405_that_names_the_right_one(http: TestClient) -> None:
    response = http.get(CHAT)
    assert response.status_code == 405
    assert response.headers["allow"] == "POST"
    assert response.json()["error"]["code"] == "method_not_allowed"


def test_foreign_host_is_403(http: TestClient, service: ScriptedService) -> None:
    response = http.post(CHAT, json=ask(), headers={"host": "evil.example:11435"})
    assert response.status_code == 403
    assert response.json()["error"]["code"] == "forbidden"
    assert service.asked == []


def test_foreign_origin_is_403_and_gets_no_cors_headers(http: TestClient, service: ScriptedService) -> None:
    for method in ("POST", "OPTIONS"):
        response = http.request(
            method,
            CHAT,
            json=ask(),
            headers={"origin": "https://evil.example", "access-control-request-method": "POST"},
        )
        assert response.status_code == 403
        assert "access-control-allow-origin" not in response.headers
    assert service.asked == []


def test_allowed_origin_gets_preflight_and_can_read_errors(http: TestClient) -> None:
    origin = {"origin": "http://localhost:3000"}
    asking = {
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type, x-lang",
    }
    preflight = http.options(CHAT, headers={**origin, **asking})
    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-origin"] == "http://localhost:3000"
    assert preflight.headers["access-control-allow-headers"] == "content-type, x-lang"
    error = http.post(CHAT, json={}, headers=origin)
    assert error.status_code == 400
    assert error.headers["access-control-allow-origin"] == "http://localhost:3000"
    assert error.headers["vary"] == "origin"


def test_api_key_is_wanted_where_one_is_set(service: ScriptedService) -> None:
    app = create_app(service, Settings(api_key="s3cret"), lambda: None)
    with TestClient(app, base_url=BASE) as http:
        response = http.post(CHAT, json=ask())
        assert response.status_code == 401
        assert response.headers["www-authenticate"] == "Bearer"
        assert http.get("/health").status_code == 200
        answered = http.post(CHAT, json=ask(), headers={"authorization": "Bearer s3cret"})
        assert answered.status_code == 200


LENIENT: dict[str, Any] = {
    "verbosity": "low",
    "n\x1ba": 1,
    "messages": [{"role": "user", "content": "x", "y": 1}],
}


@pytest.mark.parametrize("path", [CHAT, "/api/chat"])
def test_lenient_passes_over_fields_and_names_them(service: ScriptedService, path: str) -> None:
    service.stored = [stored(MODEL)]
    app = create_app(service, Settings(lenient=True), lambda: None)
    body = {"model": MODEL, "stream": False, **LENIENT}
    with TestClient(app, base_url=BASE) as http:
        response = http.post(path, json=body)
        assert response.status_code == 200
        named = response.headers["x-llmrun-not-honoured"].split(", ")
        assert sorted(named) == ["n?a", "verbosity", "y"]
        assert "x-llmrun-not-honoured" not in http.post(CHAT, json=ask()).headers
        wrong = http.post(CHAT, json={**ask(), **LENIENT, "temperature": -1})
        assert wrong.json()["error"]["param"] == "temperature"


def test_lenient_is_off_unless_it_is_set(http: TestClient) -> None:
    response = http.post(CHAT, json={**ask(), "verbosity": "low"})
    assert (response.status_code, response.json()["error"]["param"]) == (400, "verbosity")


def test_prompts_are_not_logged(
    http: TestClient, service: ScriptedService, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "llmrun")
    http.post(CHAT, json=ask(messages=[{"role": "user", "content": "my secret diary"}]))
    http.post(CHAT, json=ask(messages=[{"role": "my secret diary", "content": ""}]))
    assert service.asked
    assert "diary" not in caplog.text


def test_app_exports_no_telemetry_wherever_the_environment_points(
    service: ScriptedService, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """FastAPI exports traces where this asks it to, or warns that a library is missing."""
    monkeypatch.setenv("FASTAPI_OTEL_AUTO_CONFIGURE", "true")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    app = create_app(service, Settings(), lambda: None)
    with TestClient(app, base_url=BASE) as client:
        assert client.get("/health").status_code == 200
    assert not [record for record in caplog.records if record.name.startswith("fastapi")]
