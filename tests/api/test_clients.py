"""The official client against a real socket: what it reads, what it raises, and what its hang-up does."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncGenerator, Iterator
from urllib.parse import urlsplit

import openai
import pytest

from llmrun.errors import RUNNER_DIED, LlmrunError
from llmrun.types import Event, Failed, Finished, GenerateRequest, Started, Stopped, Text, Usage
from tests.api.openai.test_chat_calls import THOUGHT_AND_CALLED
from tests.api.openai.test_models import stored
from tests.api.scripted import MODEL, TIMINGS, ScriptedService, answer, token
from tests.api.server import serving

HI = [{"role": "user", "content": "Hi"}]


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[ScriptedService, str]]:
    service = ScriptedService(stored=[stored(MODEL)])
    with serving(service) as url:
        yield service, url


@pytest.fixture
def client(shared: tuple[ScriptedService, str]) -> Iterator[openai.OpenAI]:
    _, url = shared
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=10) as made:
        yield made


def test_chat_whole(client: openai.OpenAI) -> None:
    reply = client.chat.completions.create(model=MODEL, messages=HI, n=2)
    assert [choice.message.content for choice in reply.choices] == ["Hello wörld"] * 2
    assert reply.usage.prompt_tokens_details.cached_tokens == 2
    assert reply.usage.completion_tokens == 4
    assert reply.timings["ttft_ms"] == TIMINGS.ttft_ms


def test_chat_stream_every_chunk_reads_cleanly(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model=MODEL, messages=HI, n=2, stream=True, stream_options={"include_usage": True}
    )
    texts, reasons, usages = ["", ""], [[], []], []
    for chunk in stream:
        assert chunk.object == "chat.completion.chunk"
        usages += [chunk.usage] if chunk.usage else []
        for choice in chunk.choices:
            assert choice.logprobs is None
            texts[choice.index] += choice.delta.content or ""
            reasons[choice.index] += [choice.finish_reason] if choice.finish_reason else []
    assert texts == ["Hello wörld"] * 2
    assert reasons == [["stop"], ["stop"]]
    assert [usage.total_tokens for usage in usages] == [9]


def test_chat_stream_helper_joins_tool_calls(client: openai.OpenAI, play: ScriptedService) -> None:
    async def calls(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        for event in THOUGHT_AND_CALLED:
            yield event

    play.script = calls
    tools = [{"type": "function", "function": {"name": name}} for name in ("weather", "time")]
    with client.chat.completions.stream(model=MODEL, messages=HI, tools=tools) as stream:
        kinds = [event.type for event in stream]
        message = stream.get_final_completion().choices[0].message
    assert "tool_calls.function.arguments.done" in kinds
    assert [(made.id, made.function.name, made.function.arguments) for made in message.tool_calls] == [
        ("call_a", "weather", '{"city":"Köln"}'),
        ("call_b", "time", "{}"),
    ]
    assert message.content == "Let me see."
    assert message.reasoning_content == "They ask."
    history = [*HI, message.model_dump(), {"role": "tool", "tool_call_id": "call_b", "content": "noon"}]
    client.chat.completions.create(model=MODEL, messages=history, tools=tools)
    assert play.asked[-1].messages[-1].tool_call_id == "call_b"


def test_chat_stream_helper_accumulates_the_reply(client: openai.OpenAI) -> None:
    with client.chat.completions.stream(model=MODEL, messages=HI) as stream:
        for _ in stream:
            pass
        reply = stream.get_final_completion()
    assert reply.choices[0].message.content == "Hello wörld"
    assert reply.choices[0].finish_reason == "stop"


def test_chat_logprobs_read_as_the_clients_classes(client: openai.OpenAI, play: ScriptedService) -> None:
    async def script(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        yield Started(1, 1)
        yield Text(0, "a", (token("a", -0.5, ("a", -0.5), ("b", -1.0)),))
        yield Stopped(0, "length")
        yield Finished(Usage(prompt=1, completion=1), TIMINGS)

    play.script = script
    reply = client.chat.completions.create(model=MODEL, messages=HI, logprobs=True, top_logprobs=2)
    record = reply.choices[0].logprobs.content[0]
    assert (record.token, record.bytes, record.logprob) == ("a", [97], -0.5)
    assert [top.token for top in record.top_logprobs] == ["a", "b"]


def test_completions_stream_of_several_prompts(client: openai.OpenAI, play: ScriptedService) -> None:
    async def script(request: GenerateRequest) -> AsyncGenerator[Event, None]:
        for event in answer(f"<{request.prompt}>"):
            yield event

    play.script = script
    texts = ["", "", ""]
    for chunk in client.completions.create(model=MODEL, prompt=["a", "b", "c"], stream=True):
        for choice in chunk.choices:
            texts[choice.index] += choice.text
    assert texts == ["<a>", "<b>", "<c>"]


def test_models_list_and_retrieve(client: openai.OpenAI) -> None:
    (model,) = client.models.list().data
    assert model.id == MODEL
    assert client.models.retrieve(MODEL).created == model.created


def test_errors_are_raised_as_the_clients_classes(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as unknown:
        client.chat.completions.create(model="nobody", messages=HI)
    assert unknown.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError) as wrong:
        client.chat.completions.create(model=MODEL, messages=HI, temperature=-1)
    assert wrong.value.param == "temperature"


def test_stream_that_breaks_raises_in_the_client(client: openai.OpenAI, play: ScriptedService) -> None:
    async def script(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        yield Started(1, 1)
        yield Text(0, "Hel")
        yield Failed(LlmrunError(RUNNER_DIED, "the runner was killed by signal 9").info())

    play.script = script
    stream = client.chat.completions.create(model=MODEL, messages=HI, stream=True)
    with pytest.raises(openai.APIError, match="signal 9") as broken:
        for _ in stream:
            pass
    assert broken.value.code == "runner_died"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("words_first", [False, True])
def test_closed_socket_closes_the_request(
    shared: tuple[ScriptedService, str], play: ScriptedService, stream: bool, words_first: bool
) -> None:
    begun, closed = threading.Event(), threading.Event()

    async def script(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        try:
            if words_first:
                yield Started(1, 1)
                yield Text(0, "Once")
            begun.set()
            await asyncio.Event().wait()
        finally:
            closed.set()

    play.script = script
    address = urlsplit(shared[1])
    assert address.hostname is not None
    body = json.dumps({"model": MODEL, "messages": HI, "stream": stream})
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: {address.netloc}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((address.hostname, address.port)) as raw:
        raw.sendall((head + body).encode())
        assert begun.wait(5)
        assert not closed.is_set()
    assert closed.wait(10)


def test_eight_streams_at_once_all_finish(shared: tuple[ScriptedService, str], play: ScriptedService) -> None:
    async def script(request: GenerateRequest) -> AsyncGenerator[Event, None]:
        assert request.messages
        for event in answer(*f"{request.messages[0].content} says hello".split(" ")):
            await asyncio.sleep(0)
            yield event

    play.script = script

    async def one(client: openai.AsyncOpenAI, name: str) -> str:
        messages = [{"role": "user", "content": name}]
        stream = await client.chat.completions.create(model=MODEL, messages=messages, stream=True)
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    async def work() -> list[str]:
        async with openai.AsyncOpenAI(base_url=f"{shared[1]}/v1", api_key="none", max_retries=0) as client:
            return await asyncio.gather(*(one(client, f"n{number}") for number in range(8)))

    assert asyncio.run(work()) == [f"n{number}sayshello" for number in range(8)]
