from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from llmrun.api.ollama.bodies import GenerateBody, OllamaChatBody
from llmrun.api.ollama.requests import chat_request, generate_request, load_request
from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.types import GenerateRequest, Message, Options, OutputFormat, Thinking, Tool, ToolCall
from tests.api.openai.test_models import stored

CHAT = stored("tiny:1m")
PLAIN = replace(CHAT, kind="completion")


def generate(model: Any = CHAT, **fields: Any) -> GenerateRequest:
    return generate_request(GenerateBody.parse({"model": "tiny", **fields}), "req_1", model)


def chat(*messages: dict[str, object], **fields: Any) -> GenerateRequest:
    body = OllamaChatBody.parse({"model": "tiny", "messages": list(messages), **fields})
    return chat_request(body, "req_1", "tiny:1m")


def test_generate_every_field_reaches_the_request() -> None:
    asked = generate(
        prompt="Hi",
        system="Be brief.",
        template="{{ messages[-1].content }}",
        options={"temperature": 0, "num_predict": 8},
        keep_alive="1m",
        logprobs=True,
        top_logprobs=2,
        format="json",
        context=[1, 2, 3],
        think=False,
    )
    assert asked == GenerateRequest(
        id="req_1",
        model="tiny:1m",
        messages=(Message(role="system", content="Be brief."), Message(role="user", content="Hi")),
        options=Options(temperature=0.0, max_tokens=8),
        logprobs=2,
        output_format=OutputFormat(kind="json_object", field="format"),
        template="{{ messages[-1].content }}",
        keep_alive=60.0,
        context=(1, 2, 3),
        tokens=True,
        thinking=Thinking(enabled=False, field="think"),
    )


def test_generate_nothing_set_leaves_everything_to_the_model() -> None:
    assert generate(prompt="Hi") == GenerateRequest(
        id="req_1", model="tiny:1m", messages=(Message(role="user", content="Hi"),), tokens=True
    )


def test_generate_raw_sends_the_prompt_as_it_is() -> None:
    asked = generate(prompt="<|im_start|>user\nHi", raw=True)
    assert (asked.prompt, asked.messages, asked.tokens) == ("<|im_start|>user\nHi", None, False)


def test_generate_suffix_goes_beside_the_bare_prompt() -> None:
    asked = generate(prompt="def f(", suffix="    return 1")
    assert (asked.prompt, asked.suffix, asked.messages) == ("def f(", "    return 1", None)
    assert generate(prompt="Hi", suffix="").messages is not None


def test_generate_model_without_a_template_completes_the_prompt() -> None:
    assert generate(PLAIN, prompt="Once upon").prompt == "Once upon"


@pytest.mark.parametrize("field", ["system", "template"])
def test_generate_model_without_a_template_may_be_given_one(field: str) -> None:
    assert generate(PLAIN, prompt="Once", **{field: "x"}).messages is not None


def test_chat_messages_reach_the_request_in_order() -> None:
    asked = chat(
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "One"},
        {"role": "assistant", "content": "Yes.", "tool_calls": [], "thinking": ""},
        {"role": "user"},
        keep_alive=-1,
    )
    assert asked == GenerateRequest(
        id="req_1",
        model="tiny:1m",
        messages=(
            Message(role="system", content="Be brief."),
            Message(role="user", content="One"),
            Message(role="assistant", content="Yes."),
            Message(role="user", content=""),
        ),
        keep_alive=float("inf"),
    )


def test_chat_tools_calls_and_results_reach_the_request() -> None:
    schema = {"type": "object", "properties": {"at": {"type": "string"}}}
    calls = [{"id": "c1", "function": {"index": 0, "name": "look", "arguments": {"at": "Zürich"}}}]
    asked = chat(
        {"role": "user", "content": "Look"},
        {"role": "assistant", "thinking": "Hm.", "tool_calls": calls},
        {"role": "tool", "content": "fog", "tool_name": "look", "tool_call_id": "c1"},
        tools=[
            {"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": schema}},
            {"function": {"name": "wait", "strict": True}},
        ],
        think="low",
    )
    assert asked == GenerateRequest(
        id="req_1",
        model="tiny:1m",
        messages=(
            Message(role="user", content="Look"),
            Message(
                role="assistant",
                reasoning="Hm.",
                tool_calls=(ToolCall(name="look", arguments='{"at": "Zürich"}', id="c1"),),
            ),
            Message(role="tool", content="fog", name="look", tool_call_id="c1"),
        ),
        tools=(Tool(name="look", description="Looks.", parameters=schema), Tool(name="wait", strict=True)),
        thinking=Thinking(enabled=True, effort="low", field="think"),
    )


def test_chat_two_tools_of_one_name_are_an_error() -> None:
    tool = {"function": {"name": "look"}}
    with pytest.raises(LlmrunError) as caught:
        chat({"role": "user", "content": "Hi"}, tools=[tool, tool])
    assert (caught.value.kind, caught.value.field) == (INVALID_REQUEST, "tools.1.function.name")


def test_chat_last_message_of_the_assistants_is_gone_on_from() -> None:
    asked = chat({"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Well,"})
    assert asked.continues


def test_load_wants_the_model_with_its_options_and_time() -> None:
    body = GenerateBody.parse({"model": "tiny", "options": {"num_ctx": 64}, "keep_alive": 9})
    asked = load_request(body, "req_1", "tiny:1m")
    assert (asked.model, asked.options.ctx, asked.keep_alive) == ("tiny:1m", 64, 9.0)
