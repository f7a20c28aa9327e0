from __future__ import annotations

from typing import Any

import pytest

from llmrun.api.anthropic.bodies import CountBody, MessagesBody
from llmrun.api.anthropic.requests import to_request
from llmrun.api.input_tokens import to_count
from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.types import (
    GenerateRequest,
    Message,
    Options,
    Thinking,
    TokenizeRequest,
    Tool,
    ToolCall,
    ToolChoice,
)

HI: dict[str, Any] = {"role": "user", "content": "Hi"}


LOOK: dict[str, Any] = {"name": "look", "input_schema": {"type": "object"}}


def asked(*messages: Any, **fields: Any) -> GenerateRequest:
    named = {"model": "tiny:1m", "max_tokens": 4000, "messages": list(messages) or [HI]}
    return to_request(MessagesBody.parse({**named, **fields}), "req_1")


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "look", "input": arguments}


def result(name: str, content: Any = None, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": name, "content": content, **fields}


def test_to_request_every_field_reaches_the_request() -> None:
    schema = {"type": "object", "properties": {"at": {"type": "string"}}}
    request = asked(
        HI,
        system="Be brief.",
        temperature=0.5,
        top_p=0.25,
        top_k=3,
        stop_sequences=["\n"],
        time_limit=2.5,
        tools=[{"name": "look", "description": "Looks.", "input_schema": schema, "strict": True}],
        tool_choice={"type": "tool", "name": "look", "disable_parallel_tool_use": True},
        thinking={"type": "enabled", "budget_tokens": 1024},
        output_config={"effort": "low", "format": {"type": "json_schema", "schema": schema}},
    )
    assert request.output_format is not None
    assert request == GenerateRequest(
        id="req_1",
        model="tiny:1m",
        messages=(Message(role="system", content="Be brief."), Message(role="user", content="Hi")),
        options=Options(temperature=0.5, top_p=0.25, top_k=3, max_tokens=4000, stop=("\n",), time_limit=2.5),
        tools=(Tool(name="look", description="Looks.", parameters=schema, strict=True),),
        tool_choice=ToolChoice(mode="required", name="look", parallel=False),
        thinking=Thinking(enabled=True, effort="low", budget=1024, wish=True),
        output_format=request.output_format,
    )
    assert request.output_format.kind == "json_schema"


def test_to_request_nothing_set_leaves_everything_to_the_model() -> None:
    assert asked() == GenerateRequest(
        id="req_1",
        model="tiny:1m",
        messages=(Message(role="user", content="Hi"),),
        options=Options(max_tokens=4000),
    )


def test_to_request_choices_of_tools() -> None:
    tool = {"name": "look", "input_schema": {"type": "object"}}
    modes = [asked(tools=[tool], tool_choice={"type": kind}).tool_choice for kind in ("auto", "any", "none")]
    assert modes == [ToolChoice(), ToolChoice(mode="required"), ToolChoice(mode="none")]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"tools": [LOOK, LOOK]}, "tools.1.name"),
        ({"tools": [LOOK], "tool_choice": {"type": "tool", "name": "x"}}, "tool_choice.name"),
    ],
)
def test_to_request_tools_that_do_not_fit_together_are_named(fields: Any, field: str) -> None:
    with pytest.raises(LlmrunError) as caught:
        asked(**fields)
    assert (caught.value.kind, caught.value.field) == (INVALID_REQUEST, field)


def test_to_request_examples_of_input_are_in_the_schema() -> None:
    tool = {**LOOK, "input_examples": [{"at": "sea"}]}
    assert asked(tools=[tool]).tools[0].parameters == {"type": "object", "examples": [{"at": "sea"}]}


def test_to_request_calls_and_results_keep_their_order() -> None:
    request = asked(
        HI,
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Look twice.", "signature": "s"},
                {"type": "redacted_thinking", "data": "x"},
                text("I look."),
                call("a", at="Zürich", deep={"n": [1, None]}),
                call("b"),
            ],
        },
        {
            "role": "user",
            "content": [
                result("b", "fog", is_error=True),
                result("a", [text("sun"), text("wind")]),
                text("Well?"),
            ],
        },
    )
    assert request.messages == (
        Message(role="user", content="Hi"),
        Message(
            role="assistant",
            content="I look.",
            reasoning="Look twice.",
            tool_calls=(
                ToolCall(name="look", arguments='{"at": "Zürich", "deep": {"n": [1, null]}}', id="a"),
                ToolCall(name="look", arguments="{}", id="b"),
            ),
        ),
        Message(role="tool", content="Error: fog", name="look", tool_call_id="b"),
        Message(role="tool", content="sun\nwind", name="look", tool_call_id="a"),
        Message(role="user", content="Well?"),
    )


def test_to_request_result_without_content_is_empty() -> None:
    turns = asked(
        HI,
        {"role": "assistant", "content": [call("a")]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]},
    ).messages
    assert turns
    assert turns[-1] == Message(role="tool", name="look", tool_call_id="a")


def test_to_request_messages_of_one_role_are_one_turn() -> None:
    said = {"role": "assistant", "content": "Yes."}
    request = asked(HI, {"role": "user", "content": [text("there"), text("you")]}, said, said, HI)
    assert [(m.role, m.content) for m in request.messages or ()] == [
        ("user", "Hi\nthere\nyou"),
        ("assistant", "Yes.\nYes."),
        ("user", "Hi"),
    ]


def test_to_request_system_blocks_are_joined_without_the_agents_billing_line() -> None:
    system = [text("x-anthropic-billing-header: cc_version=1; cch=abc;"), text("Be brief."), text("Be kind.")]
    turns = asked(HI, {"role": "system", "content": "Now be long."}, HI, system=system).messages
    assert [(m.role, m.content) for m in turns or ()] == [
        ("system", "Be brief.\nBe kind."),
        ("user", "Hi"),
        ("system", "Now be long."),
        ("user", "Hi"),
    ]


def test_to_request_last_message_of_the_assistants_is_gone_on_from() -> None:
    request = asked(HI, {"role": "assistant", "content": [text("The answer is (")]})
    assert request.continues
    assert request.messages
    assert request.messages[-1] == Message(role="assistant", content="The answer is (")
    assert not asked(HI, {"role": "assistant", "content": "A"}, HI).continues


def test_to_request_last_message_without_a_word_is_left_out() -> None:
    request = asked(HI, {"role": "assistant", "content": ""})
    assert (request.continues, request.messages) == (False, (Message(role="user", content="Hi"),))


def test_to_count_asks_for_the_prompt_that_a_message_would_have() -> None:
    fields = {"model": "tiny:1m", "system": "Be brief.", "messages": [HI]}
    counted = to_count(to_request(CountBody.parse(fields), "req_1"))
    asked_for = asked(HI, system="Be brief.")
    assert isinstance(counted, TokenizeRequest)
    assert counted.prompt is not None
    assert (counted.model, counted.prompt.messages) == ("tiny:1m", asked_for.messages)
