"""The official client against a real socket: what it reads and what it raises."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from pathlib import Path

import ollama
import pytest

from llmrun.errors import RUNNER_DIED, LlmrunError
from llmrun.types import Event, Failed, GenerateRequest, Started, Text
from tests.api.openai.test_models import stored
from tests.api.scripted import AGENT, MODEL, ScriptedService, answer
from tests.api.server import serving
from tests.api.test_control import running
from tests.support.tiny import write_llama

HI = [{"role": "user", "content": "Hi"}]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ScriptedService, str]]:
    path: Path = write_llama(tmp_path_factory.mktemp("ollama") / "tiny.gguf")
    service = ScriptedService(stored=[replace(stored(MODEL), path=path)], running=[running()])
    with serving(service) as url:
        yield service, url


@pytest.fixture
def client(shared: tuple[ScriptedService, str]) -> Iterator[ollama.Client]:
    with ollama.Client(host=shared[1], timeout=10) as made:
        yield made


def test_generate_whole(client: ollama.Client) -> None:
    reply = client.generate(MODEL, "Hi", system="Be brief.", options={"temperature": 0, "num_predict": 5})
    assert reply.response == "Hello wörld"
    assert (reply.done, reply.done_reason, reply.eval_count, reply.prompt_eval_count) == (True, "stop", 2, 5)
    assert reply.total_duration == 51_000_000
    assert reply["load_duration"] == 0


def test_generate_stream(client: ollama.Client) -> None:
    parts = list(client.generate(MODEL, "Hi", stream=True, keep_alive="5m"))
    assert "".join(part["response"] for part in parts) == "Hello wörld"
    assert [part.done for part in parts] == [False, False, True]


def test_generate_options_class_with_every_load_option(client: ollama.Client) -> None:
    options = ollama.Options(num_ctx=512, num_batch=2, num_thread=1, use_mmap=True, seed=1, stop=["x"])
    assert client.generate(MODEL, "Hi", options=options).done


def test_chat_whole_and_its_reply_sent_back(client: ollama.Client, play: ScriptedService) -> None:
    reply = client.chat(MODEL, messages=HI)
    assert reply.message.content == "Hello wörld"
    client.chat(MODEL, messages=[*HI, reply.message, *HI])
    sent = play.asked[-1].messages
    assert sent is not None
    assert [m.role for m in sent] == ["user", "assistant", "user"]
    assert sent[1].content == "Hello wörld"


def test_chat_calls_and_thinking_are_read_and_their_results_sent_back(
    client: ollama.Client, play: ScriptedService
) -> None:
    async def script(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        for event in AGENT:
            yield event

    def look(at: str) -> str:
        """Look at a place.

        Args:
            at: where
        """
        return at

    play.script = script
    message = client.chat(MODEL, HI, tools=[look], think="high").message
    assert message.thinking == "Look twice."
    calls = message.tool_calls or ()
    assert [call.function.name for call in calls] == ["look", "wait"]
    assert calls[0].function.arguments["at"] == "sea"
    results = [{"role": "tool", "tool_name": call.function.name, "content": "done"} for call in calls]
    parts = list(client.chat(MODEL, [*HI, message, *results], tools=[look], stream=True))
    streamed = [call for part in parts for call in part.message.tool_calls or ()]
    assert streamed == list(calls)
    assert "".join(part.message.thinking or "" for part in parts) == "Look twice."
    asked = play.asked[-1]
    assert asked.tools[0].parameters["properties"]["at"]["type"] == "string"
    assert [(m.role, m.name) for m in asked.messages or ()][2:] == [("tool", "look"), ("tool", "wait")]


def test_chat_stream_text_with_strange_line_ends(client: ollama.Client, play: ScriptedService) -> None:
    strange = ["a\u2028", "b\x85c\u2029", "🙂\x0b\x1c\r\n"]

    async def script(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        for event in answer(*strange):
            yield event

    play.script = script
    parts = client.chat(MODEL, HI, stream=True)
    assert "".join(part.message.content or "" for part in parts) == "".join(strange)


def test_logprobs_read_as_the_clients_classes(client: ollama.Client) -> None:
    assert client.generate(MODEL, "Hi", logprobs=True, top_logprobs=2).logprobs == []


def test_load_and_unload(client: ollama.Client) -> None:
    assert client.generate(MODEL).done_reason == "load"
    assert client.chat(MODEL, keep_alive=0).done_reason == "unload"
    (part,) = client.generate(MODEL, stream=True)
    assert part.done_reason == "load"


def test_models_are_listed_shown_copied_and_deleted(client: ollama.Client, play: ScriptedService) -> None:
    (model,) = client.list().models
    assert (model.model, model.size, model.details and model.details.family) == (MODEL, 4000, "llama")
    assert model.modified_at is not None
    shown = client.show(MODEL)
    assert shown.capabilities == ["completion", "tools"]
    assert shown.modelinfo is not None
    assert shown.modelinfo["general.architecture"] == "llama"
    (loaded,) = client.ps().models
    assert loaded.expires_at is not None
    assert loaded.expires_at.year > 2200
    assert loaded.context_length == 2048
    assert client.copy(MODEL, "mine").status == "success"
    play.stored.append(stored("mine"))
    assert client.delete("mine").status == "success"


def test_pull_whole_and_streamed(client: ollama.Client) -> None:
    assert client.pull("new:1b").status == "success"
    steps = list(client.pull("new:1b", stream=True))
    assert [step.completed for step in steps if step.digest] == [50, 100]
    assert steps[-1].status == "success"


def test_create_of_a_model_and_of_a_file(
    client: ollama.Client, play: ScriptedService, tmp_path: Path
) -> None:
    assert client.create("mine", from_=MODEL, system="Be brief.", parameters={"seed": 1}).status == "success"
    path = write_llama(tmp_path / "own.gguf")
    digest = client.create_blob(path)
    steps = list(client.create("own", files={"own.gguf": digest}, stream=True))
    assert steps[-1].status == "success"
    assert [name for name, _ in play.created] == ["mine", "own"]


def test_errors_are_raised_with_their_status(client: ollama.Client) -> None:
    with pytest.raises(ollama.ResponseError, match="not found") as unknown:
        client.chat("nobody", HI)
    assert unknown.value.status_code == 404
    with pytest.raises(ollama.ResponseError, match=r"options\.temperature") as wrong:
        client.generate(MODEL, "Hi", options={"temperature": -1})
    assert wrong.value.status_code == 400
    with pytest.raises(ollama.ResponseError, match="not found"):
        client.delete("nobody")
    with pytest.raises(ollama.ResponseError, match="nobody"):
        list(client.pull("nobody", stream=True))


def test_stream_that_breaks_raises_in_the_client(client: ollama.Client, play: ScriptedService) -> None:
    async def script(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        yield Started(1, 1)
        yield Text(0, "Hel")
        yield Failed(LlmrunError(RUNNER_DIED, "the runner was killed by signal 9").info())

    play.script = script
    stream = client.generate(MODEL, "Hi", stream=True)
    assert next(stream).response == "Hel"
    with pytest.raises(ollama.ResponseError, match="signal 9"):
        next(stream)


def test_eight_streams_at_once_all_finish(shared: tuple[ScriptedService, str]) -> None:
    async def one(client: ollama.AsyncClient) -> str:
        parts = await client.chat(MODEL, HI, stream=True)
        return "".join([part.message.content or "" async for part in parts])

    async def work() -> list[str]:
        async with ollama.AsyncClient(host=shared[1]) as client:
            return await asyncio.gather(*(one(client) for _ in range(8)))

    assert asyncio.run(work()) == ["Hello wörld"] * 8
