from __future__ import annotations

from collections.abc import AsyncGenerator

from starlette.testclient import TestClient

from llmrun.types import (
    AnyRequest,
    Event,
    Finished,
    Message,
    Rendered,
    RenderRequest,
    Tokenized,
    TokenizeRequest,
    Usage,
)
from tests.api.openai.test_models import stored
from tests.api.scripted import MODEL, TIMINGS, ScriptedService

HI = [{"role": "user", "content": "Hi"}]


async def rendered(_: AnyRequest) -> AsyncGenerator[Event, None]:
    yield Rendered("<user>Hi")
    yield Finished(Usage(prompt=0, completion=0), TIMINGS)


def asked(service: ScriptedService) -> RenderRequest:
    (request,) = service.looked_up
    assert isinstance(request, RenderRequest)
    return request


def test_apply_template_gives_the_prompt_of_a_chat_completion(
    http: TestClient, service: ScriptedService
) -> None:
    service.lookup = rendered
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    reply = http.post("/apply-template", json={"model": MODEL, "messages": HI, "tools": [tool]})
    assert reply.json() == {"prompt": "<user>Hi"}
    prompt = asked(service).prompt
    assert prompt.messages == (Message(role="user", content="Hi"),)
    assert [each.name for each in prompt.tools] == ["f"]
    assert prompt.template_kwargs == {}
    assert service.asked == []


def test_apply_template_without_the_beginning_of_an_answer(
    http: TestClient, service: ScriptedService
) -> None:
    service.stored = [stored(MODEL)]
    http.post("/apply-template", json={"messages": HI, "add_generation_prompt": False})
    assert asked(service).prompt.template_kwargs == {"add_generation_prompt": False}
    assert asked(service).model == MODEL


def test_apply_template_errors_are_llama_servers(http: TestClient) -> None:
    reply = http.post("/apply-template", json={"model": MODEL, "messages": []})
    assert reply.json()["error"] == {
        "code": 400,
        "message": "messages should not be empty",
        "type": "invalid_request_error",
    }


def test_apply_template_with_tokens_gives_those_of_the_same_conversation(
    http: TestClient, service: ScriptedService
) -> None:
    async def answers(request: AnyRequest) -> AsyncGenerator[Event, None]:
        if isinstance(request, TokenizeRequest):
            yield Tokenized((1, 2), (b"<user>", b"\xff"))
        else:
            yield Rendered("<user>Hi")
        yield Finished(Usage(prompt=0, completion=0), TIMINGS)

    service.lookup = answers
    reply = http.post("/apply-template", json={"model": MODEL, "messages": HI, "with_tokens": True})
    pieces = [{"id": 1, "piece": "<user>"}, {"id": 2, "piece": [255]}]
    assert reply.json() == {"prompt": "<user>Hi", "tokens": pieces}
    render, tokenize = service.looked_up
    assert isinstance(render, RenderRequest)
    assert isinstance(tokenize, TokenizeRequest)
    assert tokenize.prompt == render.prompt
