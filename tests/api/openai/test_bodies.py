from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat.completion_create_params import CompletionCreateParamsBase as ChatParams
from openai.types.completion_create_params import CompletionCreateParamsBase as CompletionParams

from llmrun.api.bounds import INT32
from llmrun.api.openai.bodies import ChatBody, CompletionBody
from llmrun.api.schema import Body
from llmrun.errors import INVALID_REQUEST, UNSUPPORTED_FIELD, LlmrunError

HI = {"role": "user", "content": "Hi"}


def chat(**fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [HI], **fields}


def completion(**fields: Any) -> dict[str, Any]:
    return {"model": "m", "prompt": "Once", **fields}


def error_of(body: type[Body], value: dict[str, Any]) -> LlmrunError | None:
    try:
        body.parse(value)
    except LlmrunError as error:
        return error
    return None


def refusal(body: type[Body], value: dict[str, Any]) -> LlmrunError:
    error = error_of(body, value)
    assert error is not None
    return error


@pytest.mark.parametrize(
    ("value", "field", "words"),
    [
        (chat(model=5), "model", "should be a string"),
        ({"model": "m"}, "messages", "is missing"),
        (chat(messages=HI), "messages", "should be a list, not an object"),
        (chat(messages=[]), "messages", "should not be empty"),
        (chat(messages=["Hi"]), "messages.0", "should be an object, not 'Hi'"),
        (chat(messages=[HI, {"content": "x"}]), "messages.1.role", "is missing"),
        (chat(messages=[{"role": "robot", "content": "x"}]), "messages.0.role", "not 'robot'"),
        (chat(messages=[{"role": "user"}]), "messages.0.content", "is missing"),
        (chat(messages=[{"role": "user", "content": 5}]), "messages.0.content", "a string or a list of"),
        (chat(messages=[{"role": "user", "content": []}]), "messages.0.content", "should not be empty"),
        (
            chat(messages=[{"role": "user", "content": [{"type": "text", "text": None}]}]),
            "messages.0.content.0.text",
            "should be a string",
        ),
        (
            chat(messages=[{"role": "user", "content": [{"type": "video", "text": ""}]}]),
            "messages.0.content.0.type",
            "not 'video'",
        ),
        (chat(messages=[{**HI, "nmae": "x"}]), "messages.0.nmae", "did you mean 'name'?"),
        (chat(temprature=1), "temprature", "did you mean 'temperature'?"),
        (chat(num_ctx=9), "num_ctx", "did you mean 'ctx'"),
        (chat(temperature=-0.1), "temperature", "greater than or equal to 0, not -0.1"),
        (chat(temperature="1"), "temperature", "should be a number, not '1'"),
        (chat(temperature=True), "temperature", "should be a number, not true"),
        (chat(top_p=0), "top_p", "greater than 0"),
        (chat(top_p=1.01), "top_p", "less than or equal to 1"),
        (chat(min_p=2), "min_p", "less than or equal to 1"),
        (chat(typical_p=-0.1), "typical_p", "0, not -0.1"),
        (chat(top_k=-1), "top_k", "greater than or equal to 0"),
        (chat(top_k=INT32 + 1), "top_k", "less than or equal to"),
        (chat(repeat_penalty=0), "repeat_penalty", "equal to 0.01, not 0"),
        (chat(repeat_last_n=-2), "repeat_last_n", "greater than or equal to -1"),
        (chat(presence_penalty=2.1), "presence_penalty", "less than or equal to 2"),
        (chat(frequency_penalty=-3), "frequency_penalty", "greater than or equal to -2"),
        (chat(seed=1.5), "seed", "should be a whole number"),
        (chat(seed=2**63), "seed", "less than"),
        (chat(n=0), "n", "greater than or equal to 1"),
        (chat(n=129), "n", "less than or equal to 128"),
        (chat(stop=""), "stop.0", "should not be empty"),
        (chat(stop=["a", ""]), "stop.1", "should not be empty"),
        (chat(stop=5), "stop", "should be a list"),
        (chat(stop=["a"] * 65), "stop", "at most 64 items"),
        (chat(max_completion_tokens=0), "max_completion_tokens", "greater than or equal to 1"),
        (chat(max_tokens=-2), "max_tokens", "greater than or equal to -1"),
        (chat(max_completion_tokens="8"), "max_completion_tokens", "should be a whole number"),
        (chat(n_predict=7, max_tokens=8), "max_tokens", "is 8 but n_predict is 7"),
        (chat(typical_p=0.5, typ_p=0.6), "typ_p", "is 0.6 but typical_p is 0.5"),
        (chat(max_tokens=7, max_completion_tokens=8), "max_tokens", "is 7 but max_completion_tokens is 8"),
        (chat(logit_bias={"x": 1}), "logit_bias.x", "token id"),
        (chat(logit_bias={"-1": 1}), "logit_bias.-1", "token id"),
        (chat(logit_bias={"٣": 1}), "logit_bias.٣", "token id"),
        (chat(logit_bias={"1": 101}), "logit_bias.1", "less than or equal to 100"),
        (chat(logit_bias=[]), "logit_bias", "should be an object"),
        (chat(logprobs=3), "logprobs", "should be true or false"),
        (chat(logprobs=True, top_logprobs=21), "top_logprobs", "less than or equal to 20"),
        (chat(top_logprobs=2), "top_logprobs", "only allowed with logprobs: true"),
        (chat(stream="yes"), "stream", "should be true or false"),
        (chat(stream_options={}), "stream_options", "only allowed with stream: true"),
        (chat(stream=True, stream_options={"include_use": 1}), "stream_options.include_use", "include_usage"),
        (chat(chat_template_kwargs={"a": 2**64}), "chat_template_kwargs.a", "64 bits"),
        (chat(reasoning_effort="none", think=True), "think", "reasoning_effort is none"),
        (chat(reasoning_effort="low", think=False), "think", "reasoning_effort is low"),
        (chat(reasoning_effort="most"), "reasoning_effort", "'none', 'minimal', 'low', 'medium', 'high', "),
        (chat(metadata={"a": 1}), "metadata.a", "should be a string"),
        (chat(user=7), "user", "should be a string"),
    ],
)  # fmt: skip
def test_chat_body_wrong_value_names_the_field_in_words(
    value: dict[str, Any], field: str, words: str
) -> None:
    error = refusal(ChatBody, value)
    assert error.kind is INVALID_REQUEST
    assert error.field == field
    assert str(error).startswith(f"{field} ")
    assert words in str(error)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools.0.custom"),
        ({"tool_choice": {"type": "custom", "custom": {"name": "x"}}}, "tool_choice.custom"),
        ({"functions": [{}]}, "functions"),
        ({"function_call": {"name": "x"}}, "function_call"),
        ({"store": True}, "store"),
        ({"verbosity": "low"}, "verbosity"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"audio": {}}, "audio"),
        ({"web_search_options": {}}, "web_search_options"),
        ({"messages": [HI, {"role": "function", "name": "f", "content": "x"}]}, "messages.1.role"),
        ({"messages": [{**HI, "function_call": {"name": "f"}}]}, "messages.0.function_call"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
            "messages.0.content.0.image_url",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}]},
            "messages.0.content.0.input_audio",
        ),
    ],
)
def test_chat_body_known_field_that_would_change_the_answer_is_refused(
    fields: dict[str, Any], field: str
) -> None:
    error = refusal(ChatBody, chat(**fields))
    assert error.kind is UNSUPPORTED_FIELD
    assert error.field == field
    assert field in error.message


@pytest.mark.parametrize(
    "fields",
    [
        {
            "tools": [],
            "tool_choice": "none",
            "context_overflow": "error",
            "functions": [],
            "function_call": "none",
        },
        {"response_format": {"type": "text"}, "modalities": ["text"], "store": False, "verbosity": "medium"},
        {"tools": None, "response_format": None, "temperature": None, "stop": None, "n": None},
        {"user": "ann", "metadata": {"a": "b"}, "service_tier": "auto", "parallel_tool_calls": True},
        {
            "prediction": {"type": "content", "content": "x"},
            "prompt_cache_key": "k",
            "safety_identifier": "s",
        },
        {"stream": True, "stream_options": {"include_usage": True, "include_obfuscation": False}},
        {"max_tokens": 8, "max_completion_tokens": 8},
        {"top_logprobs": 0},
        {"messages": [{"role": "assistant", "content": "x", "tool_calls": None, "refusal": None}, HI]},
        {"chat_template_kwargs": {"tools_in_user_message": False, "deep": [{"a": [1, 2.5, None]}]}},
        {"temperature": 3, "seed": -1, "logit_bias": {}},
    ],
)
def test_chat_body_harmless_fields_are_accepted(fields: dict[str, Any]) -> None:
    ChatBody.parse(chat(**fields))


def test_chat_body_deep_template_variable_is_refused_not_a_crash() -> None:
    deep: object = 1
    for _ in range(400):
        deep = [deep]
    error = refusal(ChatBody, chat(chat_template_kwargs={"a": deep}))
    assert error.field == "chat_template_kwargs.a"


def test_chat_body_knows_every_field_of_the_official_client() -> None:
    assert set(ChatParams.__annotations__) - set(ChatBody.model_fields) == set()


def test_completion_body_knows_every_field_of_the_official_client() -> None:
    assert set(CompletionParams.__annotations__) - set(CompletionBody.model_fields) == set()


@pytest.mark.parametrize(
    ("prompt", "field"),
    [
        (None, "prompt"),
        ({}, "prompt"),
        (5, "prompt"),
        ([], "prompt"),
        ([1, "a"], "prompt.1"),
        ([1, -1], "prompt.1"),
        ([1, 2.0], "prompt.1"),
        ([1, INT32 + 1], "prompt.1"),
        (["a", None], "prompt.1"),
        (["a", []], "prompt.1"),
        ([[1], [2, True]], "prompt.1.1"),
        ([[[1]]], "prompt.0.0"),
        (["a"] * 2049, "prompt"),
    ],
)
def test_completion_body_wrong_prompt_names_the_place(prompt: object, field: str) -> None:
    assert refusal(CompletionBody, completion(prompt=prompt)).field == field


@pytest.mark.parametrize(
    ("fields", "field"),
    [({"echo": True, "logprobs": 0, "suffix": "x"}, "suffix")],
)
def test_completion_body_known_field_not_built_is_refused(fields: dict[str, Any], field: str) -> None:
    error = refusal(CompletionBody, completion(**fields))
    assert error.kind is UNSUPPORTED_FIELD
    assert error.field == field


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"best_of": 0}, "best_of", "greater than or equal to 1"),
        ({"best_of": 2, "n": 3}, "best_of", "is 2, but n is 3"),
        ({"best_of": 2, "stream": True}, "best_of", "only allowed without stream"),
        ({"suffix": "x", "prompt": ["a", [1]]}, "suffix", "only allowed with prompts that are text"),
        ({"max_tokens": -2}, "max_tokens", "greater than or equal to -1"),
    ],
)
def test_completion_body_wrong_value_names_the_field(fields: dict[str, Any], field: str, words: str) -> None:
    error = refusal(CompletionBody, completion(**fields))
    assert (error.kind, error.field) == (INVALID_REQUEST, field)
    assert words in error.message


def test_completion_body_one_answer_of_one_may_be_streamed() -> None:
    CompletionBody.parse(completion(best_of=1, stream=True, suffix="", max_tokens=0))


def test_completion_body_logprobs_is_a_count() -> None:
    assert refusal(CompletionBody, completion(logprobs=True)).field == "logprobs"
    assert refusal(CompletionBody, completion(logprobs=6)).field == "logprobs"
    assert CompletionBody.parse(completion(logprobs=5)).logprobs == 5


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


# The first draw builds hypothesis' tables, which is slow beside busy neighbours.


@given(st.dictionaries(st.sampled_from([*ChatBody.model_fields, "other"]), json_values, max_size=4))
def test_chat_body_any_json_is_a_body_or_an_error_that_names_a_field(fields: dict[str, Any]) -> None:
    error = error_of(ChatBody, chat(**fields))
    if error is not None:
        assert error.field
        assert error.field.split(".")[0] in fields
        assert error.message.startswith(error.field)


@given(json_values)
def test_completion_body_any_prompt_is_prompts_or_an_error_that_names_it(prompt: object) -> None:
    error = error_of(CompletionBody, completion(prompt=prompt))
    if error is not None:
        assert error.field is not None
        assert error.field.startswith("prompt")
    else:
        prompts = CompletionBody.parse(completion(prompt=prompt)).prompt
        assert prompts
        assert all(isinstance(p, str) or (p and all(type(t) is int for t in p)) for p in prompts)


def test_chat_more_messages_than_can_be_checked_in_a_moment_are_refused() -> None:
    messages = [{"role": "user", "content": "x"}] * 10_001
    with pytest.raises(LlmrunError, match="messages should have at most 10000 items") as failure:
        ChatBody.parse({"model": "m", "messages": messages})
    assert failure.value.kind is INVALID_REQUEST
    assert ChatBody.parse({"model": "m", "messages": messages[1:]})


@pytest.mark.parametrize(
    ("fields", "kind", "text"),
    [
        ({"json_schema": {"type": "string"}}, "json_schema", '{"type": "string"}'),
        ({"json_schema": {}, "response_format": {"type": "json_object"}}, "json_object", ""),
        ({"grammar": 'root ::= "a"', "response_format": {"type": "text"}}, "gbnf", 'root ::= "a"'),
    ],
)
def test_llama_servers_own_names_of_a_format_are_honoured(
    fields: dict[str, object], kind: str, text: str
) -> None:
    found = ChatBody.parse(chat(**fields)).output_format()
    assert found is not None
    assert (found.kind, found.text) == (kind, text)


def test_format_said_in_two_ways_is_refused() -> None:
    form = {"type": "choice", "choices": ["a"]}
    with pytest.raises(LlmrunError, match="response_format already says"):
        ChatBody.parse(chat(json_schema={}, response_format=form))
