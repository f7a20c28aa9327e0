"""Anthropic's official client against a real socket: what it reads and what it raises."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from typing import Any

import anthropic
import pytest

from llmrun.errors import OVERLOADED, RUNNER_DIED, LlmrunError
from llmrun.types import Event, Failed, Finished, GenerateRequest, Started, Text, Tokenized, Usage
from tests.api.openai.test_models import stored
from tests.api.scripted import AGENT, MODEL, TIMINGS, ScriptedService
from tests.api.server import serving

HI: list[Any] = [{"role": "user", "content": "Hi"}]
TOOLS: list[Any] = [
    {"name": "look", "input_schema": {"type": "object"}},
    {"name": "wait", "input_schema": {"type": "object"}},
]


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[ScriptedService, str]]:
    service = ScriptedService(stored=[stored(MODEL)])
    with serving(service) as url:
        yield service, url


@pytest.fixture
def client(shared: tuple[ScriptedService, str]) -> Iterator[anthropic.Anthropic]:
    _, url = shared
    with anthropic.Anthropic(base_url=url, api_key="none", max_retries=0, timeout=10) as made:
        yield made


async def agent(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
    for event in AGENT:
        yield event


def test_message_whole(client: anthropic.Anthropic) -> None:
    message = client.messages.create(model=MODEL, max_tokens=9, messages=HI)
    assert [block.type for block in message.content] == ["text"]
    assert message.content[0].text == "Hello wörld"
    assert (message.stop_reason, message.usage.output_tokens) == ("end_turn", 2)
    assert (message.usage.input_tokens, message.usage.cache_read_input_tokens) == (3, 2)
    assert message._request_id


def test_stream_helper_builds_the_message_that_the_whole_reply_is(
    client: anthropic.Anthropic, play: ScriptedService
) -> None:
    play.script = agent
    asked: dict[str, Any] = {"model": MODEL, "max_tokens": 100, "messages": HI, "tools": TOOLS}
    with client.messages.stream(**asked) as stream:
        kinds = [event.type for event in stream]
        streamed = stream.get_final_message()
    whole = client.messages.create(**asked)
    assert kinds[0] == "message_start"
    assert kinds[-1] == "message_stop"
    for one, other in zip(streamed.content, whole.content, strict=True):
        assert one.to_dict() == other.to_dict()
    assert (streamed.stop_reason, streamed.usage.to_dict()) == (whole.stop_reason, whole.usage.to_dict())
    assert [block.type for block in whole.content] == ["thinking", "text", "tool_use", "tool_use"]


def test_what_came_back_can_be_sent_again(client: anthropic.Anthropic, play: ScriptedService) -> None:
    play.script = agent
    first = client.messages.create(model=MODEL, max_tokens=100, messages=HI, tools=TOOLS)
    results = [
        {"type": "tool_result", "tool_use_id": block.id, "content": f"{block.name} did"}
        for block in first.content
        if block.type == "tool_use"
    ]
    turns: list[Any] = [
        *HI,
        {"role": "assistant", "content": first.content},
        {"role": "user", "content": results},
    ]
    client.messages.create(model=MODEL, max_tokens=100, messages=turns, tools=TOOLS)
    sent = play.asked[-1].messages or ()
    assert [m.role for m in sent] == ["user", "assistant", "tool", "tool"]
    assert sent[1].reasoning == "Look twice."
    assert [call.id for call in sent[1].tool_calls] == [m.tool_call_id for m in sent[2:]]


def test_beta_messages_of_an_agent_are_answered(client: anthropic.Anthropic, play: ScriptedService) -> None:
    play.script = agent
    message = client.beta.messages.create(
        model=MODEL,
        max_tokens=4000,
        messages=HI,
        system=[{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        tools=TOOLS,
        thinking={"type": "enabled", "budget_tokens": 1024},
        metadata={"user_id": "someone"},
        betas=["context-management-2025-06-27", "interleaved-thinking-2025-05-14"],
        context_management={"edits": [{"type": "clear_tool_uses_20250919"}]},
    )
    assert message.context_management is not None
    assert message.context_management.applied_edits == []
    assert message.stop_reason == "tool_use"


def test_count_tokens(client: anthropic.Anthropic, play: ScriptedService) -> None:
    async def lookup(_request: Any) -> AsyncGenerator[Event, None]:
        yield Tokenized((1, 2, 3), (b"a", b"b", b"c"))
        yield Finished(Usage(prompt=0, completion=0), TIMINGS)

    play.lookup = lookup
    counted = client.messages.count_tokens(model=MODEL, messages=HI, tools=TOOLS, system="Be brief.")
    assert counted.input_tokens == 3


def test_models_list_and_retrieve(client: anthropic.Anthropic) -> None:
    (model,) = client.models.list()
    assert model.id == MODEL
    assert client.models.retrieve(MODEL).created_at == model.created_at


def test_errors_are_raised_as_the_clients_classes(client: anthropic.Anthropic, play: ScriptedService) -> None:
    with pytest.raises(anthropic.NotFoundError) as unknown:
        client.messages.create(model="nobody", max_tokens=9, messages=HI)
    assert unknown.value.type == "not_found_error"
    assert unknown.value.request_id
    with pytest.raises(anthropic.BadRequestError) as wrong:
        client.messages.create(model=MODEL, max_tokens=-1, messages=HI)
    assert "max_tokens" in str(wrong.value.api_message)
    assert wrong.value.error_code == "invalid_request"

    async def full(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        raise LlmrunError(OVERLOADED, "512 requests wait already")
        yield

    play.script = full
    with pytest.raises(anthropic.OverloadedError):
        client.messages.create(model=MODEL, max_tokens=9, messages=HI)


def test_stream_that_breaks_raises_in_the_client(client: anthropic.Anthropic, play: ScriptedService) -> None:
    async def script(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        yield Started(1, 1)
        yield Text(0, "Hel")
        yield Failed(LlmrunError(RUNNER_DIED, "the runner was killed by signal 9").info())

    play.script = script
    with (
        pytest.raises(anthropic.APIStatusError, match="signal 9") as broken,
        client.messages.stream(model=MODEL, max_tokens=9, messages=HI) as stream,
    ):
        stream.until_done()
    assert broken.value.type == "api_error"
