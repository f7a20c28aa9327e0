from __future__ import annotations

from typing import Any

import pytest

from llmrun.api.openai.responses.bodies import ResponsesBody
from llmrun.api.openai.responses.requests import conversation
from llmrun.errors import INVALID_REQUEST, UNSUPPORTED_FIELD, LlmrunError
from llmrun.types import Message, ToolCall

HI = {"role": "user", "content": "Weather?"}
CALL = {"type": "function_call", "call_id": "a", "name": "weather", "arguments": '{"city": "Köln"}'}
OUTPUT = {"type": "function_call_output", "call_id": "a", "output": "rain"}


def turns(given: object, earlier: tuple[Message, ...] = ()) -> tuple[Message, ...]:
    return conversation(ResponsesBody.parse({"model": "m", "input": given}), earlier)


def test_text_is_one_turn_of_the_user() -> None:
    assert turns("Hi") == (Message(role="user", content="Hi"),)


def test_messages_of_every_role_and_shape() -> None:
    assert turns(
        [
            {"role": "developer", "content": "Be brief."},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": t} for t in "ab"]},
            {
                "type": "message",
                "id": "msg_1",
                "status": "completed",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Yes.", "annotations": [], "logprobs": []}],
            },
            HI,
        ]
    ) == (
        Message(role="system", content="Be brief."),
        Message(role="user", content="a\nb"),
        Message(role="assistant", content="Yes."),
        Message(role="user", content="Weather?"),
    )


def test_reasoning_text_and_calls_that_follow_one_another_are_one_turn() -> None:
    assert turns(
        [
            HI,
            {
                "type": "reasoning",
                "id": "rs",
                "summary": [],
                "content": [{"type": "reasoning_text", "text": "Hm."}],
            },
            {"role": "assistant", "content": "Let me see."},
            CALL,
            {**CALL, "call_id": "b", "arguments": ""},
            OUTPUT,
            {**OUTPUT, "call_id": "b", "output": [{"type": "input_text", "text": "snow"}]},
            {"role": "assistant", "content": "Rain."},
            {"role": "assistant", "content": "And snow."},
            HI,
        ]
    ) == (
        Message(role="user", content="Weather?"),
        Message(
            role="assistant",
            content="Let me see.",
            reasoning="Hm.",
            tool_calls=(
                ToolCall(id="a", name="weather", arguments='{"city": "Köln"}'),
                ToolCall(id="b", name="weather", arguments="{}"),
            ),
        ),
        Message(role="tool", content="rain", tool_call_id="a"),
        Message(role="tool", content="snow", tool_call_id="b"),
        Message(role="assistant", content="Rain."),
        Message(role="assistant", content="And snow."),
        Message(role="user", content="Weather?"),
    )


def test_output_may_answer_a_call_of_the_stored_response() -> None:
    earlier = (Message(role="assistant", tool_calls=(ToolCall(id="a", name="weather"),)),)
    assert turns([OUTPUT], earlier)[1:] == (Message(role="tool", content="rain", tool_call_id="a"),)


def test_output_is_of_one_call_once_also_behind_a_stored_response() -> None:
    call = Message(role="assistant", tool_calls=(ToolCall(id="a", name="weather"),))
    earlier = (call, Message(role="tool", content="rain", tool_call_id="a"))
    with pytest.raises(LlmrunError, match="waits for its output"):
        turns([OUTPUT], earlier)
    assert len(turns([CALL, OUTPUT], earlier)) == 4


@pytest.mark.parametrize(
    ("given", "field", "words"),
    [
        (None, "input", "should be a string or a list of items"),
        ([], "input", "should not be empty"),
        (["Hi"], "input.0", "should be an object"),
        ([{}], "input.0.type", "is missing"),
        ([{"type": "poem"}], "input.0.type", "is 'poem'; it should be one of: function_call,"),
        ([{**HI, "role": "tool"}], "input.0.message.role", "not 'tool'"),
        ([{"role": "user"}], "input.0.message.content", "is missing"),
        ([{**HI, "content": [{"type": "text", "text": ""}]}], "input.0.message.content.0.type", "is 'text'"),
        ([{**HI, "name": "x"}], "input.0.message.name", "is not a known field"),
        ([HI, OUTPUT], "input.1.call_id", "is 'a', which is the id of no function call before it"),
        ([HI, CALL, OUTPUT, OUTPUT], "input.3.call_id", "waits for its output"),
        ([{**CALL, "arguments": "{"}], "input.0.function_call.arguments", "the JSON text of an object"),
        ([{**CALL, "call_id": ""}], "input.0.function_call.call_id", "should not be empty"),
    ],
)
def test_wrong_item_is_an_error_that_names_the_path(given: object, field: str, words: str) -> None:
    with pytest.raises(LlmrunError) as caught:
        turns(given)
    assert (caught.value.kind, caught.value.field) == (INVALID_REQUEST, field)
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("item", "field"),
    [
        ({"type": "item_reference", "id": "msg_1"}, "input.0.type"),
        ({"type": "web_search_call", "id": "ws"}, "input.0.type"),
        ({**HI, "content": [{"type": "input_image", "image_url": "x"}]}, "input.0.message.content.0.type"),
        (
            {"type": "reasoning", "summary": [], "encrypted_content": "x"},
            "input.0.reasoning.encrypted_content",
        ),
    ],
)
def test_known_item_that_is_not_built_is_refused(item: dict[str, Any], field: str) -> None:
    with pytest.raises(LlmrunError) as caught:
        turns([item])
    assert (caught.value.kind, caught.value.field) == (UNSUPPORTED_FIELD, field)
