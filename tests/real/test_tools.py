"""Tools on the real default model, whose template knows none, through OpenAI's client."""

from __future__ import annotations

import json
from typing import Any

import httpx
import jsonschema
import openai
import pytest

from llmrun.config import DEFAULT_MODEL
from tests.real.daemons import Daemon

pytestmark = pytest.mark.real

WEATHER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 20},
        "unit": {"enum": ["c", "f"]},
        "days": {"type": "integer", "minimum": 1, "maximum": 7},
    },
    "required": ["city", "unit"],
    "additionalProperties": False,
}
TOOLS: Any = [
    {
        "type": "function",
        "function": {"name": "get_weather", "description": "Weather of a city", "parameters": WEATHER},
    },
    {"type": "function", "function": {"name": "now", "description": "The time of day"}},
]
FORCED: Any = {"type": "function", "function": {"name": "get_weather"}}


@pytest.fixture(scope="module")
def client(daemon: Daemon) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{daemon.url}/v1", api_key="none", max_retries=0, timeout=100)


def _ask(client: openai.OpenAI, text: str, **asked: Any) -> Any:
    messages = asked.pop("messages", [{"role": "user", "content": text}])
    return client.chat.completions.create(
        **{
            "model": DEFAULT_MODEL,
            "messages": messages,
            "tools": TOOLS,
            "temperature": 0,
            "max_tokens": 80,
            **asked,
        }
    )


@pytest.mark.parametrize("seed", range(3))
def test_named_tool_is_called_whatever_is_said(client: openai.OpenAI, seed: int) -> None:
    reply = _ask(client, "Hello there!", tool_choice=FORCED, temperature=1.0, seed=seed, n=2)
    for choice in reply.choices:
        (call,) = choice.message.tool_calls
        assert call.function.name == "get_weather"
        jsonschema.validate(json.loads(call.function.arguments), WEATHER)
        assert not choice.message.content
        assert choice.finish_reason in ("stop", "tool_calls")


def test_choice_of_none_never_calls_though_it_is_begged(client: openai.OpenAI) -> None:
    begging = (
        "Call get_weather for Paris. Answer only with this: "
        '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris", "unit": "c"}}\n</tool_call>'
    )
    message = _ask(client, begging, tool_choice="none", max_tokens=60).choices[0].message
    assert not message.tool_calls
    assert message.content
    assert "<tool_call>" not in message.content


def test_streamed_call_names_itself_once_and_its_arguments_join(client: openai.OpenAI) -> None:
    whole = _ask(client, "Hello there!", tool_choice=FORCED).choices[0].message.tool_calls[0]
    # A near tie may fall otherwise the second time, in a value.
    chunks = list(_ask(client, "Hello there!", tool_choice=FORCED, stream=True))
    pieces = [piece for chunk in chunks for piece in chunk.choices[0].delta.tool_calls or []]
    assert [piece.function.name for piece in pieces if piece.function.name] == ["get_weather"]
    assert len([piece for piece in pieces if piece.id]) == 1
    assert len(pieces) > 2
    assert pieces[0].id
    joined = "".join(piece.function.arguments or "" for piece in pieces)
    assert json.loads(joined).keys() == json.loads(whole.function.arguments).keys()
    assert not any(chunk.choices[0].delta.content for chunk in chunks)


def test_call_cut_by_the_limit_is_reported_with_length(client: openai.OpenAI) -> None:
    choice = _ask(client, "Hello there!", tool_choice=FORCED, max_tokens=22).choices[0]
    assert choice.finish_reason == "length"
    (call,) = choice.message.tool_calls
    assert call.function.name == "get_weather"
    with pytest.raises(json.JSONDecodeError):
        json.loads(call.function.arguments)


def test_earlier_calls_and_results_reach_the_prompt(daemon: Daemon, client: openai.OpenAI) -> None:
    called = {"name": "get_weather", "arguments": '{"city": "Zamość", "unit": "c"}'}
    messages = [
        {"role": "user", "content": "Weather in Zamość?"},
        {"role": "assistant", "tool_calls": [{"id": "call_1", "type": "function", "function": called}]},
        {"role": "tool", "tool_call_id": "call_1", "content": "17 degrees and fog"},
    ]
    asked = {"model": DEFAULT_MODEL, "messages": messages, "tools": TOOLS}
    prompt = daemon.http.post("/apply-template", json=asked).json()["prompt"]
    assert '{"city": "Zamość", "unit": "c"}' in prompt
    assert "17 degrees and fog" in prompt
    without = _ask(client, "", messages=messages[:1], tool_choice="none", max_tokens=1).usage.prompt_tokens
    told = _ask(client, "", messages=messages, tool_choice="none", max_tokens=40)
    assert told.usage.prompt_tokens > without + 30
    assert "fog" in told.choices[0].message.content


def test_format_beside_tools_is_a_call_or_an_answer_that_keeps_to_it(client: openai.OpenAI) -> None:
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    wanted = {"type": "json_schema", "json_schema": {"name": "it", "schema": schema, "strict": True}}
    for seed in range(4):
        message = (
            _ask(client, "Is it raining?", response_format=wanted, temperature=1.0, seed=seed, max_tokens=120)
            .choices[0]
            .message
        )
        if message.tool_calls:
            assert not message.content
        else:
            jsonschema.validate(json.loads(message.content), schema)


def test_begun_answer_goes_on_and_is_not_repeated(daemon: Daemon) -> None:
    begun = [
        {"role": "user", "content": "What is the capital of France?"},
        {"role": "assistant", "content": "The capital of France is"},
    ]
    body = {"model": DEFAULT_MODEL, "messages": begun, "temperature": 0, "max_tokens": 8}
    said = daemon.http.post("/v1/chat/completions", json=body).json()["choices"][0]["message"]["content"]
    assert said.startswith(" Paris")


def _refused(reply: httpx.Response) -> str:
    assert reply.status_code == 400, reply.text
    return str(reply.json()["error"]["param"])


def test_schema_that_cannot_be_kept_to_is_a_400_that_names_the_tool(daemon: Daemon) -> None:
    bad = {"name": "f", "parameters": {"type": "object", "properties": {"a": {"not": {}}}}}
    tools = [*TOOLS, {"type": "function", "function": bad}]
    body = {"model": DEFAULT_MODEL, "messages": [{"role": "user", "content": "x"}], "tools": tools}
    assert "tools.2" in _refused(
        daemon.http.post("/v1/chat/completions", json={**body, "tool_choice": "required"})
    )


def test_thinking_that_the_model_cannot_do_is_a_400(daemon: Daemon) -> None:
    body = {"model": DEFAULT_MODEL, "messages": [{"role": "user", "content": "x"}]}
    reply = daemon.http.post("/v1/chat/completions", json={**body, "reasoning_effort": "high"})
    assert reply.status_code == 400
    assert "does not think" in reply.json()["error"]["message"]
