"""The count of a prompt's tokens, by OpenAI's route for it and by llama-server's."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import openai
import pytest
from starlette.testclient import TestClient

from llmrun.types import AnyRequest, Event, Finished, Tokenized, TokenizeRequest, Usage
from tests.api.openai.test_models import stored
from tests.api.scripted import MODEL, TIMINGS, ScriptedService
from tests.api.server import serving

HI = [{"role": "user", "content": "Hi"}]
TOOL = {"type": "function", "name": "look", "parameters": {"type": "object"}}
COUNTING: list[tuple[str, dict[str, Any], str]] = [
    ("/v1/responses/input_tokens", {"input": "Hi", "tools": [TOOL]}, "/v1/responses"),
    ("/responses/input_tokens", {"input": "Hi", "instructions": "Be brief."}, "/responses"),
    ("/v1/chat/completions/input_tokens", {"messages": HI}, "/v1/chat/completions"),
    ("/chat/completions/input_tokens", {"messages": HI}, "/chat/completions"),
]


async def five(_: AnyRequest) -> AsyncGenerator[Event, None]:
    yield Tokenized((1, 2, 3, 4, 5))
    yield Finished(Usage(prompt=0, completion=0), TIMINGS)


@pytest.fixture
def service() -> ScriptedService:
    return ScriptedService(stored=[stored(MODEL)], lookup=five)


@pytest.mark.parametrize(("path", "body", "answering"), COUNTING)
def test_count_is_of_the_prompt_that_would_be_answered(
    http: TestClient, service: ScriptedService, path: str, body: dict[str, Any], answering: str
) -> None:
    reply = http.post(path, json={"model": MODEL, **body})
    assert reply.json() == {"object": "response.input_tokens", "input_tokens": 5}
    assert http.post(answering, json={"model": MODEL, **body}).status_code == 200
    (counted,), (asked,) = service.looked_up, service.asked
    assert isinstance(counted, TokenizeRequest)
    assert counted.prompt is not None
    assert (counted.prompt.messages, counted.prompt.tools) == (asked.messages, asked.tools)


def test_count_goes_on_from_a_stored_response(http: TestClient, service: ScriptedService) -> None:
    stored_id = http.post("/v1/responses", json={"model": MODEL, "input": "Hi"}).json()["id"]
    body = {"model": MODEL, "input": "More", "previous_response_id": stored_id}
    assert http.post("/v1/responses/input_tokens", json=body).status_code == 200
    (counted,) = service.looked_up
    assert isinstance(counted, TokenizeRequest)
    assert counted.prompt is not None
    assert [message.content for message in counted.prompt.messages or ()] == ["Hi", "Hello wörld", "More"]


def test_count_of_a_wrong_body_names_the_field(http: TestClient) -> None:
    reply = http.post("/v1/responses/input_tokens", json={"model": MODEL, "input": 5})
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "input")


def test_openais_client_counts(service: ScriptedService) -> None:
    with (
        serving(service) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=10) as client,
    ):
        assert client.responses.input_tokens.count(model=MODEL, input="Hi").input_tokens == 5


def test_responses_are_there_without_v1_too(http: TestClient) -> None:
    made = http.post("/responses", json={"model": MODEL, "input": "Hi"}).json()
    assert http.get(f"/responses/{made['id']}").json() == http.get(f"/v1/responses/{made['id']}").json()
    assert http.delete(f"/responses/{made['id']}").json()["deleted"]
    assert http.get(f"/v1/responses/{made['id']}").status_code == 404
