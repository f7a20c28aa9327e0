"""The events of a response and the response itself, golden; and that one says what the other says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from llmrun.api.oneline import Json
from llmrun.api.openai.responses.bodies import ResponsesBody
from llmrun.api.openai.responses.replies import GrowingResponse, ResponseReply, ResponseStream
from llmrun.api.timings import llama_timings
from llmrun.errors import RUNNER_DIED, LlmrunError
from llmrun.types import Event, Finished, Message, Reasoning, Started, Stopped, Text, ToolCall, Usage
from tests.api.openai.test_chat_calls import ONLY_CALLED, THOUGHT_AND_CALLED
from tests.api.scripted import TIMINGS, answer, token

OFFICIAL: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
BEGUN = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1_700_000_000,
    "status": "in_progress",
    "background": False,
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "model": "tiny:1m",
    "output": [],
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": {"effort": None, "summary": None},
    "service_tier": "default",
    "store": True,
    "temperature": None,
    "text": {"format": {"type": "text"}, "verbosity": "medium"},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": None,
    "truncation": "disabled",
    "usage": None,
    "user": None,
}
TIMES = llama_timings(Usage(prompt=5, completion=2, cached=2), TIMINGS)


def growing(kept: list[tuple[Json, Message]] | None = None, **fields: Any) -> GrowingResponse:
    body = ResponsesBody.parse({"model": "tiny:1m", "input": "Hi", **fields})
    into = [] if kept is None else kept
    return GrowingResponse("resp_1", 1_700_000_000, body, lambda *pair: into.append(pair))


def whole(events: Sequence[Event], **fields: Any) -> dict[str, Any]:
    reply = ResponseReply(growing(**fields))
    for event in events:
        reply.add(0, event)
    decoded: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(reply.body()))
    return decoded


def decoded(sent: bytes) -> list[dict[str, Any]]:
    """The data of each event. Its name is its type, its number its place; the official client takes it."""
    found = []
    for number, piece in enumerate(sent.removesuffix(b"\n\n").split(b"\n\n")):
        name, data = piece.split(b"\n")
        event = msgspec.json.decode(data.removeprefix(b"data: "))
        assert name == b"event: " + event["type"].encode()
        assert event.pop("sequence_number") == number
        OFFICIAL.validate_python({**event, "sequence_number": number})
        found.append(event)
    return found


def streamed(events: Sequence[Event], **fields: Any) -> list[dict[str, Any]]:
    stream = ResponseStream(growing(stream=True, **fields))
    return decoded(b"".join(stream.event(0, event) for event in events) + stream.end())


def test_stream_of_text_golden() -> None:
    at = {"item_id": "msg_1_0", "output_index": 0, "content_index": 0}
    part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
    item = {"id": "msg_1_0", "type": "message", "status": "in_progress", "role": "assistant", "content": []}
    said = {**part, "text": "Hello wörld"}
    done = {**item, "status": "completed", "content": [said]}
    assert streamed(answer("Hello", " wörld")) == [
        {"type": "response.created", "response": BEGUN},
        {"type": "response.in_progress", "response": BEGUN},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.content_part.added", **at, "part": part},
        {"type": "response.output_text.delta", **at, "delta": "Hello", "logprobs": []},
        {"type": "response.output_text.delta", **at, "delta": " wörld", "logprobs": []},
        {"type": "response.output_text.done", **at, "text": "Hello wörld", "logprobs": []},
        {"type": "response.content_part.done", **at, "part": said},
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        {
            "type": "response.completed",
            "response": {
                **BEGUN,
                "status": "completed",
                "output": [done],
                "usage": {
                    "input_tokens": 5,
                    "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 3},
                    "output_tokens": 2,
                    "output_tokens_details": {"reasoning_tokens": 0},
                    "total_tokens": 7,
                },
                "timings": TIMES,
            },
        },
    ]


def test_stream_of_reasoning_text_and_calls_golden() -> None:
    thought = {"item_id": "rs_1_0", "output_index": 0, "content_index": 0}
    called, again = ({"item_id": f"fc_1_{index}", "output_index": index} for index in (2, 3))
    item = {"id": "fc_1_2", "type": "function_call", "status": "in_progress"}
    whole_call = {**item, "call_id": "call_a", "name": "weather", "arguments": '{"city":"Köln"}'}
    events = streamed(THOUGHT_AND_CALLED)
    assert events[2:9] == [
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {
                "id": "rs_1_0",
                "type": "reasoning",
                "status": "in_progress",
                "summary": [],
                "content": [],
            },
        },
        {
            "type": "response.content_part.added",
            **thought,
            "part": {"type": "reasoning_text", "text": ""},
        },
        {"type": "response.reasoning_text.delta", **thought, "delta": "They"},
        {"type": "response.reasoning_text.delta", **thought, "delta": " ask."},
        {"type": "response.reasoning_text.done", **thought, "text": "They ask."},
        {
            "type": "response.content_part.done",
            **thought,
            "part": {"type": "reasoning_text", "text": "They ask."},
        },
        {
            "type": "response.output_item.done",
            "output_index": 0,
            "item": {
                "id": "rs_1_0",
                "type": "reasoning",
                "status": "completed",
                "summary": [],
                "content": [{"type": "reasoning_text", "text": "They ask."}],
            },
        },
    ]
    assert [event["type"] for event in events[9:15]] == [
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
    ]
    assert events[15:-1] == [
        {"type": "response.output_item.added", "output_index": 2, "item": {**whole_call, "arguments": ""}},
        {"type": "response.function_call_arguments.delta", **called, "delta": '{"city":'},
        {"type": "response.function_call_arguments.delta", **called, "delta": '"Köln"}'},
        {
            "type": "response.function_call_arguments.done",
            **called,
            "arguments": '{"city":"Köln"}',
            "name": "weather",
        },
        {
            "type": "response.output_item.done",
            "output_index": 2,
            "item": {**whole_call, "status": "completed"},
        },
        {
            "type": "response.output_item.added",
            "output_index": 3,
            "item": {
                "id": "fc_1_3",
                "type": "function_call",
                "status": "in_progress",
                "call_id": "call_b",
                "name": "time",
                "arguments": "",
            },
        },
        {"type": "response.function_call_arguments.delta", **again, "delta": "{}"},
        {"type": "response.function_call_arguments.done", **again, "arguments": "{}", "name": "time"},
        {
            "type": "response.output_item.done",
            "output_index": 3,
            "item": {
                "id": "fc_1_3",
                "type": "function_call",
                "status": "completed",
                "call_id": "call_b",
                "name": "time",
                "arguments": "{}",
            },
        },
    ]
    last = events[-1]["response"]
    assert last["status"] == "completed"
    assert [item["type"] for item in last["output"]] == ["reasoning", "message", *["function_call"] * 2]
    assert last["usage"]["output_tokens_details"] == {"reasoning_tokens": 3}


@pytest.mark.parametrize("events", [answer("Hello"), answer(), THOUGHT_AND_CALLED, ONLY_CALLED])
def test_whole_response_is_what_the_stream_ends_with(events: list[Event]) -> None:
    last = streamed(events)[-1]["response"]
    assert whole(events) == last
    dones = [e["item"] for e in streamed(events) if e["type"] == "response.output_item.done"]
    assert dones == last["output"]


def test_answer_cut_by_the_limit_is_incomplete() -> None:
    events = streamed(answer("Hello", reason="length"))
    assert events[-1]["type"] == "response.incomplete"
    response = events[-1]["response"]
    assert (response["status"], response["incomplete_details"]) == (
        "incomplete",
        {"reason": "max_output_tokens"},
    )
    assert [item["status"] for item in response["output"]] == ["incomplete"]


def test_call_cut_by_the_limit_is_shown_but_not_gone_on_from() -> None:
    kept: list[tuple[Json, Message]] = []
    reply = ResponseReply(growing(kept))
    for event in ONLY_CALLED:
        reply.add(0, event)
    (item,) = reply.body()["output"]  # type: ignore[misc]
    assert (item["status"], item["arguments"]) == ("incomplete", '{"city"')
    assert kept[0][1] == Message(role="assistant")


def test_empty_answer_has_one_empty_message() -> None:
    (item,) = whole(answer())["output"]
    assert [part["text"] for part in item["content"]] == [""]


def test_logprobs_come_where_they_are_included() -> None:
    events: list[Event] = [
        Started(1, 1),
        Reasoning(0, "hm", (token("hm"),)),
        Text(0, "", (token(b"\xf0\x9f"),)),
        Text(0, "\U0001f642", (token(b"\x99\x82", -0.25, ("x", -2.0)),)),
        Stopped(0, "stop"),
        Finished(Usage(prompt=1, completion=3), TIMINGS),
    ]
    included = {"include": ["message.output_text.logprobs"], "top_logprobs": 1}
    records = whole(events, **included)["output"][1]["content"][0]["logprobs"]
    assert [record["logprob"] for record in records] == [-0.5, -0.25]
    assert records[1]["top_logprobs"] == [{"token": "x", "logprob": -2.0, "bytes": [120]}]
    deltas = [e for e in streamed(events, **included) if e["type"] == "response.output_text.delta"]
    assert [record for delta in deltas for record in delta["logprobs"]] == records
    assert whole(events)["output"][1]["content"][0]["logprobs"] == []


def test_failure_ends_the_stream_with_what_came_before() -> None:
    stream = ResponseStream(growing(stream=True))
    sent = b"".join(stream.event(0, event) for event in THOUGHT_AND_CALLED[:6])
    events = decoded(sent + stream.failure(LlmrunError(RUNNER_DIED, "the model's process died")))
    assert events[-1]["type"] == "response.failed"
    response = events[-1]["response"]
    assert response["status"] == "failed"
    assert response["error"]["code"] == "server_error"
    assert "the model's process died" in response["error"]["message"]
    assert [item["type"] for item in response["output"]] == ["reasoning", "message"]


def test_failure_before_anything_was_sent_still_creates_the_response() -> None:
    events = decoded(ResponseStream(growing(stream=True)).failure(LlmrunError(RUNNER_DIED, "it died")))
    assert [event["type"] for event in events] == [
        "response.created",
        "response.in_progress",
        "response.failed",
    ]


def test_response_shows_what_was_asked() -> None:
    asked: dict[str, Any] = {
        "instructions": "Be brief.",
        "max_output_tokens": 9,
        "metadata": {"a": "b"},
        "tools": [{"type": "function", "name": "f", "parameters": None, "strict": None, "description": "F"}],
        "tool_choice": {
            "type": "allowed_tools",
            "mode": "auto",
            "tools": [{"type": "function", "name": "f"}],
        },
        "reasoning": {"effort": "low"},
        "text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": "object"}}},
        "temperature": 0.5,
        "top_p": 0.25,
        "user": "ann",
    }
    response = whole(answer("{}"), **asked)
    for name in (
        "instructions",
        "max_output_tokens",
        "metadata",
        "tool_choice",
        "temperature",
        "top_p",
        "user",
    ):
        assert response[name] == asked[name]
    assert response["tools"] == [{**asked["tools"][0], "strict": False}]
    assert response["text"]["format"] == {**asked["text"]["format"], "strict": True, "description": None}
    assert response["reasoning"]["effort"] == "low"


def test_only_what_is_to_be_stored_is_kept_with_its_turn() -> None:
    kept: list[tuple[Json, Message]] = []
    for fields in ({}, {"store": True}, {"store": False}):
        reply = ResponseReply(growing(kept, **fields))
        for event in THOUGHT_AND_CALLED:
            reply.add(0, event)
        reply.body()
    assert len(kept) == 2
    response, turn = kept[0]
    assert response["status"] == "completed"
    assert turn == Message(
        role="assistant",
        content="Let me see.",
        reasoning="They ask.",
        tool_calls=(
            ToolCall(id="call_a", name="weather", arguments='{"city":"Köln"}'),
            ToolCall(id="call_b", name="time", arguments="{}"),
        ),
    )
