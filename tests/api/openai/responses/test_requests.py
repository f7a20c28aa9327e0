from __future__ import annotations

import json
from typing import Any

import pytest
from openai.types.responses.response_create_params import ResponseCreateParamsBase

from llmrun.api.openai.responses.bodies import ResponsesBody
from llmrun.api.openai.responses.requests import conversation, to_request
from llmrun.errors import INVALID_REQUEST, UNSUPPORTED_FIELD, LlmrunError
from llmrun.types import GenerateRequest, Message, Options, OutputFormat, Thinking, Tool, ToolChoice

SCHEMA = {"type": "object", "properties": {"é": {"type": "integer"}}}
TOOLS = [
    {
        "type": "function",
        "name": "weather",
        "parameters": SCHEMA,
        "strict": True,
        "description": "The weather",
    },
    {"type": "function", "name": "time", "parameters": None, "strict": None},
]


def asked(**fields: Any) -> GenerateRequest:
    body = ResponsesBody.parse({"model": "m", "input": "Hi", **fields})
    return to_request(body, conversation(body, ()), "req_1")


def refusal(**fields: Any) -> LlmrunError:
    with pytest.raises(LlmrunError) as caught:
        asked(**fields)
    return caught.value


def test_every_field_reaches_the_request() -> None:
    assert asked(
        instructions="Be brief.",
        temperature=0,
        top_p=0.5,
        top_k=3,
        seed=7,
        max_output_tokens=8,
        tools=TOOLS,
        tool_choice={"type": "function", "name": "time"},
        parallel_tool_calls=False,
        reasoning={"effort": "low"},
        include=["message.output_text.logprobs"],
        top_logprobs=2,
        ctx=512,
    ) == GenerateRequest(
        id="req_1",
        model="m",
        messages=(Message(role="system", content="Be brief."), Message(role="user", content="Hi")),
        options=Options(temperature=0.0, top_p=0.5, top_k=3, seed=7, max_tokens=8, ctx=512),
        logprobs=2,
        tools=(
            Tool(name="weather", description="The weather", parameters=SCHEMA, strict=True),
            Tool(name="time"),
        ),
        tool_choice=ToolChoice(mode="required", name="time", parallel=False),
        thinking=Thinking(enabled=True, effort="low", field="reasoning.effort"),
    )


def test_nothing_set_leaves_everything_to_the_model() -> None:
    assert asked() == GenerateRequest(id="req_1", model="m", messages=(Message(role="user", content="Hi"),))


def test_text_format_binds_the_answer() -> None:
    given = {"format": {"type": "json_schema", "name": "x", "schema": SCHEMA, "strict": True}}
    output = asked(text=given).output_format
    assert output is not None
    assert (output.kind, json.loads(output.text)) == ("json_schema", SCHEMA)
    assert asked(text={"format": {"type": "json_object"}}).output_format == OutputFormat(
        kind="json_object", field="text.format"
    )
    assert asked(text={"format": {"type": "text"}, "verbosity": "medium"}).output_format is None


def test_allowed_tools_are_the_only_ones_in_sight() -> None:
    choice = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "time"}]}
    request = asked(tools=TOOLS, tool_choice=choice)
    assert [tool.name for tool in request.tools] == ["time"]
    assert request.tool_choice == ToolChoice(mode="required")


def test_last_turn_of_the_assistant_is_continued() -> None:
    begun = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Well,"}]
    assert asked(input=begun).continues
    assert asked(input=begun, text={"format": {"type": "json_object"}}).continues
    call = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
    assert refusal(input=[begun[0], call]).field == "input"


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        (
            {"text": {"format": {"type": "json_schema", "name": "x"}}},
            "text.format.json_schema.schema",
            "missing",
        ),
        ({"text": {"format": {"type": "yaml"}}}, "text.format.type", "is 'yaml'"),
        ({"tools": [{"type": "function"}]}, "tools.0.name", "is missing"),
        ({"tools": [{"name": "x"}]}, "tools.0.type", "is missing"),
        ({"tools": [*TOOLS, TOOLS[0]]}, "tools.2.name", "is 'weather', as is tools.0.name"),
        ({"tool_choice": "required"}, "tool_choice", "there are no tools"),
        ({"tools": TOOLS, "tool_choice": {"type": "function"}}, "tool_choice.name", "is missing"),
        (
            {"tools": TOOLS, "tool_choice": {"type": "function", "name": "date"}},
            "tool_choice.name",
            "is 'date', which is not among the tools",
        ),
        ({"max_output_tokens": 0}, "max_output_tokens", "greater than or equal to 1"),
        ({"top_logprobs": 1}, "top_logprobs", "only allowed where include has"),
        ({"reasoning": {"effort": "most"}}, "reasoning.effort", "not 'most'"),
        ({"messages": []}, "messages", "is not a known field"),
    ],
)
def test_wrong_value_is_an_error_that_names_the_field(fields: Any, field: str, words: str) -> None:
    error = refusal(**fields)
    assert (error.kind, error.field) == (INVALID_REQUEST, field)
    assert words in error.message


def test_what_coding_agents_ask_of_reasoning_is_taken_and_brings_no_log_probabilities() -> None:
    request = asked(
        reasoning={"effort": "high", "summary": "auto"},
        include=["reasoning.encrypted_content"],
        store=False,
        prompt_cache_key="k",
        parallel_tool_calls=True,
    )
    assert request.logprobs is None
    assert request.thinking is not None
    assert request.thinking.effort == "high"
    only = {"include": ["reasoning.encrypted_content"], "top_logprobs": 1}
    assert refusal(**only).field == "top_logprobs"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"tools": [{"type": "web_search"}]}, "tools.0.type"),
        ({"include": ["message.output_text.logprobs", "web_search_call.results"]}, "include.1"),
        ({"reasoning": {"mode": "pro"}}, "reasoning.mode"),
        ({"background": True}, "background"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"text": {"verbosity": "low"}}, "text.verbosity"),
    ],
)
def test_known_field_that_is_not_built_is_refused_by_name(fields: Any, field: str) -> None:
    error = refusal(**fields)
    assert (error.kind, error.field) == (UNSUPPORTED_FIELD, field)


def test_body_knows_every_field_of_the_official_client() -> None:
    assert set(ResponseCreateParamsBase.__annotations__) - set(ResponsesBody.model_fields) == set()
