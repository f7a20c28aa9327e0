from __future__ import annotations

from typing import Any

import pytest

from llmrun.api.openai.bodies import ChatBody
from llmrun.api.openai.chat import to_request
from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.types import GenerateRequest, Tool, ToolChoice

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def tool(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, **fields}}


TWO = [tool("weather", description="The weather", parameters=SCHEMA, strict=True), tool("time")]


def asked(**fields: Any) -> GenerateRequest:
    messages = [{"role": "user", "content": "Hi"}]
    return to_request(ChatBody.parse({"model": "m", "messages": messages, **fields}), "r")


def refusal(**fields: Any) -> LlmrunError:
    with pytest.raises(LlmrunError) as caught:
        asked(**fields)
    return caught.value


def test_tools_carry_name_description_schema_and_strictness() -> None:
    assert asked(tools=TWO).tools == (
        Tool(name="weather", description="The weather", parameters=SCHEMA, strict=True),
        Tool(name="time"),
    )


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (None, ToolChoice()),
        ("auto", ToolChoice()),
        ("none", ToolChoice(mode="none")),
        ("required", ToolChoice(mode="required")),
        ({"type": "function", "function": {"name": "time"}}, ToolChoice(mode="required", name="time")),
    ],
)
def test_tool_choice_leaves_all_tools_in_sight(given: object, wanted: ToolChoice) -> None:
    request = asked(tools=TWO, tool_choice=given)
    assert request.tool_choice == wanted
    assert [known.name for known in request.tools] == ["weather", "time"]


@pytest.mark.parametrize("mode", ["auto", "required"])
def test_allowed_tools_are_the_only_ones_in_sight(mode: str) -> None:
    allowed = {"mode": mode, "tools": [tool("time")]}
    request = asked(tools=TWO, tool_choice={"type": "allowed_tools", "allowed_tools": allowed})
    assert [known.name for known in request.tools] == ["time"]
    assert request.tool_choice == ToolChoice(mode=mode)


@pytest.mark.parametrize(("given", "wanted"), [(None, True), (True, True), (False, False)])
def test_parallel_tool_calls_reach_the_choice(given: bool | None, wanted: bool) -> None:
    assert asked(tools=TWO, parallel_tool_calls=given).tool_choice.parallel is wanted


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"tools": {}}, "tools", "should be a list"),
        ({"tools": [{"type": "function"}]}, "tools.0.function", "is missing"),
        ({"tools": [{"function": {"name": "x"}}]}, "tools.0.type", "is missing"),
        ({"tools": [tool("two words")]}, "tools.0.function.name", "should match pattern"),
        ({"tools": [tool("x", parameters=[])]}, "tools.0.function.parameters", "JSON Schema of an object"),
        (
            {"tools": [tool("x", parameters={"type": "string"})]},
            "tools.0.function.parameters",
            "JSON Schema of an object",
        ),
        (
            {"tools": [tool("x", parameters={"a": 2**64})]},
            "tools.0.function.parameters",
            "past 64 bits",
        ),
        ({"tools": [tool("x", strict="yes")]}, "tools.0.function.strict", "true or false"),
        ({"tools": [tool("x"), tool("x")]}, "tools.1.function.name", "is 'x', as is tools.0.function.name"),
        ({"tool_choice": "sometimes"}, "tool_choice", "not 'sometimes'"),
        ({"tool_choice": 5}, "tool_choice", "should be an object, not 5"),
        ({"tool_choice": "required"}, "tool_choice", "there are no tools"),
        ({"tools": TWO, "tool_choice": {"type": "function"}}, "tool_choice.function", "is missing"),
        (
            {"tools": TWO, "tool_choice": {"type": "auto", "function": {"name": "time"}}},
            "tool_choice.function",
            "only allowed with type function",
        ),
        (
            {"tools": TWO, "tool_choice": {"type": "function", "function": {"name": "date"}}},
            "tool_choice.function.name",
            "is 'date', which is not among the tools",
        ),
        (
            {
                "tools": TWO,
                "tool_choice": {
                    "type": "allowed_tools",
                    "allowed_tools": {"mode": "auto", "tools": [tool("time"), tool("date")]},
                },
            },
            "tool_choice.allowed_tools.tools.1.function.name",
            "is 'date'",
        ),
    ],
)
def test_wrong_tools_are_an_error_that_names_the_field(fields: Any, field: str, words: str) -> None:
    error = refusal(**fields)
    assert (error.kind, error.field) == (INVALID_REQUEST, field)
    assert words in error.message
