from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from starlette.testclient import TestClient

from llmrun.api.app import create_app
from llmrun.config import Settings
from llmrun.errors import CONTEXT_LENGTH, OVERLOADED, RUNNER_DIED, LlmrunError
from llmrun.types import (
    Event,
    Failed,
    Finished,
    GenerateRequest,
    Started,
    Text,
    Tokenized,
    TokenizeRequest,
    Usage,
)
from tests.api.conftest import BASE
from tests.api.scripted import MODEL, TIMINGS, ScriptedService

MESSAGES = "/v1/messages"
COUNT = "/v1/messages/count_tokens"


def ask(**fields: Any) -> dict[str, Any]:
    return {"model": MODEL, "max_tokens": 20, "messages": [{"role": "user", "content": "Hi"}], **fields}


def test_message_names_itself_after_the_request_and_both_headers_name_the_request(
    http: TestClient, service: ScriptedService
) -> None:
    response = http.post(MESSAGES, json=ask())
    assert response.status_code == 200
    request_id = response.headers["request-id"]
    assert response.headers["x-request-id"] == request_id == service.asked[0].id
    assert response.json()["id"] == "msg_" + request_id.removeprefix("req_")
    assert response.json()["content"] == [{"type": "text", "text": "Hello wörld"}]


def test_message_stream_is_named_events_in_order(http: TestClient) -> None:
    response = http.post(MESSAGES, json=ask(stream=True))
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    names = [line.removeprefix("event: ") for line in response.text.split("\n") if line.startswith("event: ")]
    assert names == [
        "message_start",
        "ping",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


def test_versions_and_betas_of_the_client_are_tolerated(http: TestClient) -> None:
    headers = {"anthropic-version": "1999-01-01", "anthropic-beta": "a-2025-01-01,b-2025-02-02"}
    assert http.post(f"{MESSAGES}?beta=true", json=ask(), headers=headers).status_code == 200


def test_count_is_that_of_the_prompt(http: TestClient, service: ScriptedService) -> None:
    async def lookup(request: Any) -> AsyncGenerator[Event, None]:
        assert isinstance(request, TokenizeRequest)
        assert request.prompt is not None
        yield Tokenized((1, 2, 3), (b"a", b"b", b"c"))
        yield Finished(Usage(prompt=0, completion=0), TIMINGS)

    service.lookup = lookup
    body = ask()
    del body["max_tokens"]
    assert http.post(COUNT, json=body).json() == {"input_tokens": 3}
    assert service.asked == []


@pytest.mark.parametrize("path", [MESSAGES, COUNT])
def test_wrong_field_is_a_400_in_anthropics_shape(http: TestClient, path: str) -> None:
    response = http.post(path, json={"model": MODEL, "messages": {}, "max_tokens": 5})
    assert response.status_code == 400
    body = response.json()
    assert (body["type"], body["error"]["type"]) == ("error", "invalid_request_error")
    assert body["error"]["details"]["error_code"] == "invalid_request"
    assert body["request_id"] == response.headers["request-id"]


@pytest.mark.parametrize(
    ("method", "path", "headers", "content", "status", "type_"),
    [
        ("POST", MESSAGES, {}, b"not json", 400, "invalid_request_error"),
        ("POST", MESSAGES, {"content-type": "text/plain"}, b"{}", 415, "invalid_request_error"),
        ("POST", MESSAGES, {}, b"{" + b" " * 17 * 2**20 + b"}", 413, "request_too_large"),
        ("POST", MESSAGES, {"host": "evil.example"}, b"{}", 403, "permission_error"),
        ("POST", MESSAGES, {"origin": "https://evil.example"}, b"{}", 403, "permission_error"),
        ("GET", MESSAGES, {}, b"", 405, "invalid_request_error"),
        ("POST", "/v1/messages/batches", {}, b"{}", 404, "not_found_error"),
    ],
)
def test_errors_of_every_layer_have_anthropics_shape(
    http: TestClient, method: str, path: str, headers: dict[str, str], content: bytes, status: int, type_: str
) -> None:
    sent = {"content-type": "application/json", **headers}
    response = http.request(method, path, headers=sent, content=content)
    assert response.status_code == status
    assert response.json()["error"]["type"] == type_


def test_key_is_taken_from_either_header_and_its_lack_is_an_authentication_error(
    service: ScriptedService,
) -> None:
    app = create_app(service, Settings(api_key="s3cret"), lambda: None)
    with TestClient(app, base_url=BASE) as http:
        refused = http.post(MESSAGES, json=ask(), headers={"x-api-key": "guess"})
        assert (refused.status_code, refused.json()["error"]["type"]) == (401, "authentication_error")
        for headers in ({"x-api-key": "s3cret"}, {"authorization": "Bearer s3cret"}):
            assert http.post(MESSAGES, json=ask(), headers=headers).status_code == 200


@pytest.mark.parametrize("stream", [False, True])
def test_unknown_model_is_a_404_with_the_pull_command(http: TestClient, stream: bool) -> None:
    response = http.post(MESSAGES, json=ask(model="nobody:1b", stream=stream))
    assert (response.status_code, response.json()["error"]["type"]) == (404, "not_found_error")
    assert "llmrun pull nobody:1b" in response.json()["error"]["message"]


@pytest.mark.parametrize("stream", [False, True])
def test_full_queue_is_529_with_retry_after(http: TestClient, service: ScriptedService, stream: bool) -> None:
    async def script(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        raise LlmrunError(OVERLOADED, "512 requests wait already", retry_after=2.5)
        yield

    service.script = script
    response = http.post(MESSAGES, json=ask(stream=stream))
    assert (response.status_code, response.headers["retry-after"]) == (529, "3")
    assert response.json()["error"]["type"] == "overloaded_error"


def test_prompt_too_long_is_a_400_with_both_numbers(http: TestClient, service: ScriptedService) -> None:
    async def script(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        numbers = {"prompt_tokens": 900, "context": 512}
        yield Failed(LlmrunError(CONTEXT_LENGTH, "the prompt has 900 tokens, 512 fit", **numbers).info())

    service.script = script
    error = http.post(MESSAGES, json=ask(stream=True)).json()["error"]
    assert error["details"]["prompt_tokens"] == 900
    assert error["details"]["context"] == 512


def test_stream_that_breaks_ends_in_an_error_event_without_a_stop(
    http: TestClient, service: ScriptedService
) -> None:
    async def script(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        yield Started(5, 1)
        yield Text(0, "Hel")
        yield Failed(LlmrunError(RUNNER_DIED, "the runner was killed by signal 9").info())

    service.script = script
    response = http.post(MESSAGES, json=ask(stream=True))
    last = response.text.removesuffix("\n\n").rpartition("\n\n")[2]
    assert last.startswith('event: error\ndata: {"type":"error","error":{"type":"api_error"')
    assert response.headers["request-id"] in last
    assert "message_stop" not in response.text
    assert 'stop_reason":"' not in response.text
