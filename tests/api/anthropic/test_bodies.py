from __future__ import annotations

from typing import Any

import pytest

from llmrun.api.anthropic.bodies import CountBody, MessagesBody
from llmrun.errors import INVALID_REQUEST, UNSUPPORTED_FIELD, Kind, LlmrunError
from llmrun.types import OutputFormat, Thinking

USER = {"role": "user", "content": "Hi"}
ASKED: dict[str, Any] = {"model": "tiny:1m", "max_tokens": 8, "messages": [USER]}
TOOL = {"name": "look", "input_schema": {"type": "object"}}
CALL = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "42"}


def body(**fields: Any) -> MessagesBody:
    return MessagesBody.parse({**ASKED, **fields})


def refusal(**fields: Any) -> LlmrunError:
    with pytest.raises(LlmrunError) as caught:
        body(**fields)
    return caught.value


def blocks(*content: Any, role: str = "user") -> list[Any]:
    return [{"role": role, "content": list(content)}]


def test_messages_body_without_a_limit_is_refused_by_name() -> None:
    with pytest.raises(LlmrunError) as caught:
        MessagesBody.parse({"model": "tiny:1m", "messages": [USER]})
    assert caught.value.field == "max_tokens"


def test_count_body_takes_no_limit() -> None:
    assert CountBody.parse({"model": "tiny:1m", "messages": [USER]}).messages[0].role == "user"
    with pytest.raises(LlmrunError) as caught:
        CountBody.parse(ASKED)
    assert caught.value.field == "max_tokens"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"messages": []}, "messages"),
        ({"messages": {"role": "user"}}, "messages"),
        ({"messages": [{"role": "developer", "content": "Hi"}]}, "messages.0.role"),
        ({"messages": [{"role": "user"}]}, "messages.0.content"),
        ({"messages": blocks()}, "messages.0.content"),
        ({"messages": blocks("Hi")}, "messages.0.content.0"),
        ({"messages": blocks({"type": "text"})}, "messages.0.content.0.text.text"),
        ({"messages": blocks({"text": "Hi"})}, "messages.0.content.0.type"),
        ({"messages": blocks({"type": "song"})}, "messages.0.content.0.type"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"max_tokens": "8"}, "max_tokens"),
        ({"temperature": 1.5}, "temperature"),
        ({"temperature": -0.1}, "temperature"),
        ({"top_p": 1.1}, "top_p"),
        ({"top_k": -1}, "top_k"),
        ({"stop_sequences": ["a", ""]}, "stop_sequences.1"),
        ({"stop_sequences": "a"}, "stop_sequences"),
        ({"system": [{"type": "text"}]}, "system.0.text"),
        ({"stream": 1}, "stream"),
        ({"max_token": 3}, "max_token"),
        ({"metadata": {"user": "x"}}, "metadata.user"),
    ],
)
def test_messages_body_wrong_field_is_named(fields: dict[str, Any], field: str) -> None:
    error = refusal(**fields)
    assert (error.kind, error.field) == (INVALID_REQUEST, field)


@pytest.mark.parametrize("kind", ["image", "document", "search_result", "server_tool_use"])
def test_messages_body_block_that_is_not_built_is_refused_by_name(kind: str) -> None:
    for messages in (blocks({"type": kind, "source": {}}), blocks({**RESULT, "content": [{"type": kind}]})):
        error = refusal(messages=messages)
        assert error.kind is UNSUPPORTED_FIELD
        assert str(error.field).endswith(".type")


@pytest.mark.parametrize(
    ("role", "block"),
    [
        ("user", CALL),
        ("user", {"type": "thinking", "thinking": "hm"}),
        ("assistant", RESULT),
        ("system", CALL),
    ],
)
def test_messages_body_block_of_another_role_is_named(role: str, block: dict[str, Any]) -> None:
    error = refusal(messages=blocks(block, role=role))
    assert (error.kind, error.field) == (INVALID_REQUEST, "messages.0.content.0.type")


@pytest.mark.parametrize(
    ("later", "field"),
    [
        ([USER], "messages.1.content.0"),
        ([], "messages.1.content.0"),
        (blocks({**RESULT, "tool_use_id": "t2"}), "messages.2.content.0.tool_use_id"),
        (blocks(RESULT, RESULT), "messages.2.content.1.tool_use_id"),
        ([*blocks(CALL, role="assistant"), *blocks(RESULT)], "messages.2.content.0.id"),
        ([*blocks(RESULT), *blocks("x", role="assistant"), *blocks(RESULT)], "messages.3.content.0"),
    ],
)
def test_messages_body_calls_and_results_that_do_not_match_are_named(later: list[Any], field: str) -> None:
    error = refusal(messages=[USER, *blocks(CALL, role="assistant"), *later])
    assert (error.kind, error.field) == (INVALID_REQUEST, field)


def test_messages_body_result_that_comes_in_a_second_message_of_the_turn_is_found() -> None:
    turns = [USER, *blocks(CALL, role="assistant"), USER, *blocks(RESULT)]
    assert len(body(messages=turns, tools=[TOOL]).messages) == 4


@pytest.mark.parametrize(
    ("fields", "kind", "field"),
    [
        ({"tools": [{**TOOL, "name": "two words"}]}, INVALID_REQUEST, "tools.0.name"),
        ({"tools": [{"name": "look"}]}, INVALID_REQUEST, "tools.0.input_schema"),
        ({"tools": [{**TOOL, "input_schema": {"type": "string"}}]}, INVALID_REQUEST, "tools.0.input_schema"),
        ({"tools": [{"type": "web_search_20250305", "name": "w"}]}, UNSUPPORTED_FIELD, "tools.0.type"),
        ({"tools": [{**TOOL, "defer_loading": True}]}, UNSUPPORTED_FIELD, "tools.0.defer_loading"),
        ({"tool_choice": {"type": "any"}}, INVALID_REQUEST, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": {"type": "tool"}}, INVALID_REQUEST, "tool_choice.name"),
        (
            {"tools": [TOOL], "tool_choice": {"type": "auto", "name": "look"}},
            INVALID_REQUEST,
            "tool_choice.name",
        ),
        ({"tools": [TOOL], "tool_choice": {"type": "required"}}, INVALID_REQUEST, "tool_choice.type"),
        ({"mcp_servers": [{"url": "https://x"}]}, UNSUPPORTED_FIELD, "mcp_servers"),
        ({"container": "c"}, UNSUPPORTED_FIELD, "container"),
    ],
)
def test_messages_body_wrong_tools_are_named(fields: dict[str, Any], kind: Kind, field: str) -> None:
    error = refusal(**fields)
    assert (error.kind, error.field) == (kind, field)


@pytest.mark.parametrize(
    ("thinking", "limit", "field"),
    [
        ({"type": "enabled"}, 2000, "thinking.budget_tokens"),
        ({"type": "disabled", "budget_tokens": 1024}, 2000, "thinking.budget_tokens"),
        ({"type": "enabled", "budget_tokens": 1023}, 2000, "thinking.budget_tokens"),
        ({"type": "enabled", "budget_tokens": 1024}, 1024, "thinking.budget_tokens"),
        ({"type": "between_tools"}, 2000, "thinking.type"),
        ({"type": "on"}, 2000, "thinking.type"),
    ],
)
def test_messages_body_wrong_thinking_is_named(thinking: Any, limit: int, field: str) -> None:
    assert refusal(thinking=thinking, max_tokens=limit).field == field


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({}, None),
        ({"output_config": {"effort": "max"}}, Thinking(effort="max", wish=True)),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 1024}},
            Thinking(enabled=True, budget=1024, wish=True),
        ),
        ({"thinking": {"type": "disabled"}}, Thinking(enabled=False, wish=True)),
        (
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}},
            Thinking(enabled=True, effort="low", wish=True),
        ),
    ],
)
def test_messages_body_what_is_said_of_thinking(fields: dict[str, Any], wanted: Thinking | None) -> None:
    assert body(max_tokens=4000, **fields).said_of_thinking == wanted


def test_messages_body_answer_format_under_either_name() -> None:
    wanted = {"type": "json_schema", "schema": {"type": "object"}}
    text = '{"type": "object"}'
    new = body(output_config={"format": wanted}).answer_format()
    assert new == OutputFormat(kind="json_schema", text=text, field="output_config.format.schema")
    assert refusal(output_format=wanted, output_config={"format": wanted}).field == "output_format"
    old = body(output_format=wanted).answer_format()
    assert old == OutputFormat(kind="json_schema", text=text, field="output_format.schema")


def test_messages_body_of_a_coding_agent_is_taken() -> None:
    cached = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    tools = [
        {
            "name": name,
            "description": "Does it.",
            "input_schema": {
                "$schema": "http://json-schema.org/draft-07/schema#",
                "type": "object",
                "properties": {"path": {"type": "string"}},
                "required": ["path"],
                "additionalProperties": False,
            },
            **cached,
        }
        for name in ("Read", "mcp__files__write")
    ]
    taken = body(
        max_tokens=32_000,
        system=[{"type": "text", "text": "You are an agent.", **cached}] * 2,
        messages=[
            *blocks({"type": "text", "text": "<system-reminder>…</system-reminder>"}, {"type": "text", **T}),
            *blocks(
                {"type": "thinking", "thinking": "Read it.", "signature": "abc"},
                {"type": "redacted_thinking", "data": "xyz"},
                {"type": "text", "text": "I read it."},
                {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "/a"}},
                {"type": "tool_use", "id": "t2", "name": "Read", "input": {"path": "/b"}},
                role="assistant",
            ),
            *blocks(
                {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "a"}]},
                {
                    "type": "tool_result",
                    "tool_use_id": "t2",
                    "content": "no such file",
                    "is_error": True,
                    **cached,
                },
            ),
        ],
        tools=tools,
        metadata={"user_id": "user_1_account__session_2"},
        thinking={"type": "enabled", "budget_tokens": 31_999},
        context_management={"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        output_config={"effort": "medium"},
        temperature=1,
        stream=True,
    )
    assert [tool.name for tool in taken.tools or ()] == ["Read", "mcp__files__write"]


T = {"text": "Read /a and /b", "cache_control": {"type": "ephemeral"}}
