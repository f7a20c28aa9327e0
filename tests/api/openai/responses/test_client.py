"""The official client and its helpers against a real socket."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any

import openai
import pydantic
import pytest

from llmrun.errors import RUNNER_DIED, LlmrunError
from llmrun.types import Event, Failed, GenerateRequest, Message, Started, Text, ToolCall
from tests.api.openai.test_chat_calls import THOUGHT_AND_CALLED
from tests.api.scripted import MODEL, ScriptedService, answer
from tests.api.server import serving


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[ScriptedService, openai.OpenAI]]:
    service = ScriptedService()
    with (
        serving(service) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=10) as client,
    ):
        yield service, client


@pytest.fixture
def client(shared: tuple[ScriptedService, openai.OpenAI]) -> openai.OpenAI:
    return shared[1]


def says(events: list[Event]) -> Any:
    async def script(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        for event in events:
            yield event

    return script


def test_create_gives_text_and_usage(client: openai.OpenAI) -> None:
    response = client.responses.create(model=MODEL, input="Hi")
    assert response.output_text == "Hello wörld"
    assert response.usage is not None
    assert (response.usage.input_tokens_details.cached_tokens, response.usage.total_tokens) == (2, 7)
    assert response.usage.input_tokens_details.cache_write_tokens == 3


def test_stream_helper_follows_reasoning_text_and_calls(client: openai.OpenAI, play: ScriptedService) -> None:
    play.script = says(THOUGHT_AND_CALLED)
    tools: Any = [
        {"type": "function", "name": name, "parameters": {"type": "object"}, "strict": False}
        for name in ("weather", "time")
    ]
    with client.responses.stream(model=MODEL, input="Hi", tools=tools) as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert [event.sequence_number for event in events] == list(range(len(events)))
    snapshots = [e.snapshot for e in events if e.type == "response.function_call_arguments.delta"]
    assert snapshots == ['{"city":', '{"city":"Köln"}', "{}"]
    assert [item.type for item in final.output] == ["reasoning", "message", "function_call", "function_call"]
    assert final.output_text == "Let me see."


def test_parse_helper_reads_structured_output(client: openai.OpenAI, play: ScriptedService) -> None:
    class City(pydantic.BaseModel):
        name: str

    play.script = says(answer('{"name": "Köln"}'))
    response = client.responses.parse(model=MODEL, input="A city", text_format=City)
    assert response.output_parsed == City(name="Köln")
    wanted = play.asked[-1].output_format
    assert wanted is not None
    assert wanted.kind == "json_schema"


def test_conversation_goes_on_from_the_stored_response(client: openai.OpenAI, play: ScriptedService) -> None:
    play.script = says(THOUGHT_AND_CALLED)
    first = client.responses.create(model=MODEL, input="Weather?", instructions="Be brief.")
    play.script = says(answer("Rain."))
    output: Any = {"type": "function_call_output", "call_id": "call_a", "output": "rain"}
    with client.responses.stream(model=MODEL, input=[output], previous_response_id=first.id) as stream:
        second = stream.get_final_response()
    third = client.responses.create(model=MODEL, input="Sure?", previous_response_id=second.id)
    assert third.previous_response_id == second.id
    assert play.asked[-1].messages == (
        Message(role="user", content="Weather?"),
        Message(
            role="assistant",
            content="Let me see.",
            reasoning="They ask.",
            tool_calls=(
                ToolCall(id="call_a", name="weather", arguments='{"city":"Köln"}'),
                ToolCall(id="call_b", name="time", arguments="{}"),
            ),
        ),
        Message(role="tool", content="rain", tool_call_id="call_a"),
        Message(role="assistant", content="Rain."),
        Message(role="user", content="Sure?"),
    )


SENT_BACK: list[Callable[[Any], Any]] = [
    lambda item: item,
    lambda item: item.model_dump(),
    lambda item: item.model_dump(mode="json", exclude_none=True),
    lambda item: item.to_dict(),
]


@pytest.mark.parametrize("shown", SENT_BACK, ids=["object", "dump", "bare dump", "dictionary"])
def test_own_output_can_be_sent_back_as_input(
    client: openai.OpenAI, play: ScriptedService, shown: Callable[[Any], Any]
) -> None:
    play.script = says(THOUGHT_AND_CALLED)
    first = client.responses.create(model=MODEL, input="Weather?", store=False)
    output: Any = {"type": "function_call_output", "call_id": "call_a", "output": "rain"}
    history: Any = [{"role": "user", "content": "Weather?"}, *map(shown, first.output), output]
    client.responses.create(model=MODEL, input=history)
    assert play.asked[-1].messages is not None
    assert [message.role for message in play.asked[-1].messages] == ["user", "assistant", "tool"]
    with pytest.raises(openai.BadRequestError, match="no stored response"):
        client.responses.create(model=MODEL, input="Sure?", previous_response_id=first.id)


def test_begun_answer_is_joined_in_the_stored_conversation(
    client: openai.OpenAI, play: ScriptedService
) -> None:
    begun: Any = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Well,"}]
    first = client.responses.create(model=MODEL, input=begun)
    assert play.asked[-1].continues
    client.responses.create(model=MODEL, input="And?", previous_response_id=first.id)
    assert play.asked[-1].messages is not None
    assert [message.content for message in play.asked[-1].messages] == ["Hi", "Well,Hello wörld", "And?"]


def test_stored_response_is_got_and_deleted(client: openai.OpenAI) -> None:
    made = client.responses.create(model=MODEL, input="Hi")
    assert client.responses.retrieve(made.id).to_dict() == made.to_dict()
    with pytest.raises(openai.BadRequestError, match="stream"):
        client.responses.retrieve(made.id, stream=True)
    client.responses.delete(made.id)
    with pytest.raises(openai.NotFoundError, match="no stored response"):
        client.responses.retrieve(made.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.delete(made.id)


def test_error_in_the_stream_is_a_failed_response(client: openai.OpenAI, play: ScriptedService) -> None:
    error = LlmrunError(RUNNER_DIED, "the model's process died")
    play.script = says([Started(1, 1), Text(0, "Hel"), Failed(error.info())])
    with client.responses.stream(model=MODEL, input="Hi") as stream:
        *_, last = stream
    assert last.type == "response.failed"
    assert last.response.error is not None
    assert "process died" in last.response.error.message


def test_error_before_the_stream_has_its_own_status(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        client.responses.create(model="nobody", input="Hi", stream=True)
    assert caught.value.code == "model_not_found"
