from __future__ import annotations

from typing import Any

import pytest

from llmrun.api.openai.bodies import ChatBody
from llmrun.api.openai.chat import to_request
from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.types import Message, ToolCall

HI = {"role": "user", "content": "Weather?"}


def call(id: str, arguments: str = '{"city": "Köln"}', name: str = "weather") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def calls(*made: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(made), **fields}


def result(id: str, content: object = "rain") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": content}


def turns(*messages: dict[str, Any]) -> tuple[Message, ...]:
    made = to_request(ChatBody.parse({"model": "m", "messages": list(messages)}), "r").messages
    assert made is not None
    return made


def test_calls_and_their_results_become_turns_in_order() -> None:
    assert turns(
        HI,
        calls(call("a"), call("b", ""), content="Let me see.", reasoning_content="They ask."),
        result("b", [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]),
        result("a"),
    ) == (
        Message(role="user", content="Weather?"),
        Message(
            role="assistant",
            content="Let me see.",
            reasoning="They ask.",
            tool_calls=(
                ToolCall(id="a", name="weather", arguments='{"city": "Köln"}'),
                ToolCall(id="b", name="weather", arguments="{}"),
            ),
        ),
        Message(role="tool", content="one\ntwo", tool_call_id="b"),
        Message(role="tool", content="rain", tool_call_id="a"),
    )


@pytest.mark.parametrize("content", [None, ""])
def test_content_may_be_null_where_calls_are(content: str | None) -> None:
    assert turns(HI, calls(call("a"), content=content), result("a"))[1].content == ""


def test_message_as_the_official_client_returns_it_is_taken_back() -> None:
    extras = {"refusal": None, "annotations": [], "audio": None, "function_call": None}
    assert len(turns(HI, calls({**call("a"), "index": 0}, **extras), result("a"))) == 3


def test_id_may_be_used_again_as_often_as_it_is_answered() -> None:
    again = calls(call("a"), call("a")), result("a"), result("a")
    assert len(turns(HI, *again, *again, HI)) == 8


@pytest.mark.parametrize(
    ("messages", "field", "words"),
    [
        ([HI, result("a")], "messages.1.tool_call_id", "is 'a', which is the id of no tool call before it"),
        ([HI, calls(call("a")), result("b")], "messages.2.tool_call_id", "is 'b'"),
        ([HI, result("a"), calls(call("a")), HI], "messages.1.tool_call_id", "no tool call before it"),
        ([HI, calls(call("a")), result("a"), result("a")], "messages.3.tool_call_id", "waits for its result"),
        ([HI, calls(call("a")), HI, result("a")], "messages.3.tool_call_id", "waits for its result"),
        ([HI, calls(call("a"))], "messages.1", "ends with tool calls that nothing answers"),
        ([HI, {"role": "tool", "content": "x"}], "messages.1.tool_call_id", "is missing"),
        ([{**HI, "tool_call_id": "a"}], "messages.0.tool_call_id", "only allowed with role tool"),
        ([{**HI, "tool_calls": [call("a")]}], "messages.0.tool_calls", "only allowed with role assistant"),
        ([{**HI, "reasoning_content": "x"}], "messages.0.reasoning_content", "only allowed with role assis"),
        ([HI, {"role": "assistant", "content": None}], "messages.1.content", "is missing"),
        ([HI, {"role": "assistant", "content": None, "tool_calls": []}], "messages.1.content", "is missing"),
        ([HI, calls({"id": "a"})], "messages.1.tool_calls.0.type", "is missing"),
        ([HI, calls(call(""))], "messages.1.tool_calls.0.id", "should not be empty"),
        (
            [HI, calls(call("a", "{city: 1}"))],
            "messages.1.tool_calls.0.function.arguments",
            "should be the JSON text of an object",
        ),
        (
            [HI, calls(call("a", "[1]"))],
            "messages.1.tool_calls.0.function.arguments",
            "should be the JSON text of an object",
        ),
        (
            [HI, calls({**call("a"), "function": {"name": "x", "arguments": {}}})],
            "messages.1.tool_calls.0.function.arguments",
            "should be a string",
        ),
    ],
)
def test_wrong_turn_is_an_error_that_names_the_path(messages: Any, field: str, words: str) -> None:
    with pytest.raises(LlmrunError) as caught:
        turns(*messages)
    assert (caught.value.kind, caught.value.field) == (INVALID_REQUEST, field)
    assert words in caught.value.message
