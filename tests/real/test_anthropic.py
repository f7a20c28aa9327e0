"""Anthropic's official client against a real daemon with the real model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import jsonschema
import pytest

from llmrun.config import DEFAULT_MODEL
from tests.real.daemons import Daemon, linked_home

pytestmark = pytest.mark.real

SEA: list[Any] = [{"role": "user", "content": "Write one sentence about the sea."}]
COUNTED: list[Any] = [{"role": "user", "content": "Count from one to ten in digits, with commas."}]
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 12}, "days": {"type": "integer", "maximum": 9}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
TOOLS: list[Any] = [
    {"name": "weather", "description": "The weather in a city.", "input_schema": SCHEMA},
    {"name": "time", "description": "The time now.", "input_schema": {"type": "object"}},
]


@pytest.fixture(scope="module")
def client(daemon: Daemon) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=daemon.url, api_key="none", max_retries=0, timeout=100) as made:
        yield made


def ask(**fields: Any) -> dict[str, Any]:
    # Newer clients know no temperature; the API does.
    greedy = {"temperature": 0}
    return {"model": DEFAULT_MODEL, "max_tokens": 30, "messages": SEA, "extra_body": greedy, **fields}


def create(client: anthropic.Anthropic, **fields: Any) -> Any:
    return client.messages.create(**ask(**fields))


def stream(client: anthropic.Anthropic, **fields: Any) -> Any:
    return client.messages.stream(**ask(**fields))


def prompt_tokens(message: Any) -> int:
    return int(message.usage.input_tokens + message.usage.cache_read_input_tokens)


def test_stream_helper_joins_to_the_whole_message(client: anthropic.Anthropic) -> None:
    whole = create(client)
    with stream(client) as parts:
        text = "".join(parts.text_stream)
        streamed = parts.get_final_message()
    assert text == whole.content[0].text == streamed.content[0].text
    assert streamed.stop_reason == whole.stop_reason
    assert streamed.usage.output_tokens == whole.usage.output_tokens > 5


def test_count_tokens_is_what_the_message_then_uses(client: anthropic.Anthropic) -> None:
    asked: dict[str, Any] = {"model": DEFAULT_MODEL, "messages": SEA, "system": "Be brief."}
    counted = client.messages.count_tokens(**asked).input_tokens
    assert counted > 10
    assert prompt_tokens(client.messages.create(**asked, max_tokens=1)) == counted
    again = client.messages.create(**asked, max_tokens=1)
    assert again.usage.cache_read_input_tokens == counted - 1


def test_stop_sequence_ends_the_answer_and_is_named(client: anthropic.Anthropic) -> None:
    prefill = [*COUNTED, {"role": "assistant", "content": "1, 2, 3, 4,"}]
    message = create(client, messages=prefill, stop_sequences=[", 7", ", 9"])
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", ", 7")
    assert message.content[0].text == " 5, 6"


def test_prefilled_answer_goes_on_and_does_not_repeat_the_prefill(client: anthropic.Anthropic) -> None:
    begun = [*COUNTED, {"role": "assistant", "content": "1, 2, 3, 4,"}]
    whole = create(client, messages=begun, max_tokens=6)
    assert whole.content[0].text.startswith(" 5, 6")
    assert whole.stop_reason == "max_tokens"
    with stream(client, messages=begun, max_tokens=6) as parts:
        assert "".join(parts.text_stream) == whole.content[0].text


ONE = {"disable_parallel_tool_use": True}


@pytest.mark.parametrize("choice", [{"type": "tool", "name": "weather"}, {"type": "any"}])
def test_forced_call_keeps_to_the_schema(client: anthropic.Anthropic, choice: Any) -> None:
    hello = [{"role": "user", "content": "Hello!"}]
    tools = TOOLS if choice["type"] == "tool" else TOOLS[:1]
    asked = {"messages": hello, "tools": tools, "tool_choice": {**choice, **ONE}, "max_tokens": 200}
    whole = create(client, **asked)
    with stream(client, **asked) as parts:
        streamed = parts.get_final_message()
    for message in (whole, streamed):
        (call,) = message.content
        assert call.name == "weather"
        jsonschema.validate(call.input, SCHEMA)
        assert message.stop_reason == "tool_use"


def test_call_that_the_limit_cuts_is_reported_as_cut(client: anthropic.Anthropic) -> None:
    asked = {"tools": TOOLS, "tool_choice": {"type": "tool", "name": "weather"}, "max_tokens": 16}
    cut = create(client, **asked)
    assert cut.stop_reason == "max_tokens"
    assert "<" not in "".join(block.text for block in cut.content if block.type == "text")


def test_choice_none_makes_no_call(client: anthropic.Anthropic) -> None:
    begging = [{"role": "user", "content": "Call the tool `time` now, please!"}]
    message = create(client, messages=begging, tools=TOOLS, tool_choice={"type": "none"})
    assert [block.type for block in message.content] == ["text"]


def test_thinking_is_a_wish_that_a_model_without_it_answers(client: anthropic.Anthropic) -> None:
    wish = {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}
    message = create(client, **wish)
    assert [block.type for block in message.content] == ["text"]


def test_count_tokens_counts_tools_too(client: anthropic.Anthropic) -> None:
    bare: dict[str, Any] = {"model": DEFAULT_MODEL, "messages": SEA}
    counted = client.messages.count_tokens(**bare, tools=TOOLS).input_tokens
    assert counted > client.messages.count_tokens(**bare).input_tokens + 20
    assert prompt_tokens(client.messages.create(**bare, tools=TOOLS, max_tokens=1)) == counted


def test_tool_loop_with_results_is_answered_in_words(client: anthropic.Anthropic) -> None:
    first = create(
        client, tools=TOOLS, tool_choice={"type": "tool", "name": "weather", **ONE}, max_tokens=200
    )
    results = [
        {"type": "tool_result", "tool_use_id": block.id, "content": [{"type": "text", "text": "sun"}]}
        for block in first.content
        if block.type == "tool_use"
    ]
    turns = [
        *SEA,
        {"role": "assistant", "content": first.content},
        {"role": "user", "content": [*results, {"type": "text", "text": "So, how is it?"}]},
    ]
    last = create(client, messages=turns, tools=TOOLS, tool_choice={"type": "none"})
    assert [block.type for block in last.content] == ["text"]
    assert last.stop_reason in ("end_turn", "max_tokens")


def test_structured_output_is_what_the_schema_says(client: anthropic.Anthropic) -> None:
    wanted = {"format": {"type": "json_schema", "schema": SCHEMA}}
    message = create(client, output_config=wanted, max_tokens=100)
    jsonschema.validate(json.loads(message.content[0].text), SCHEMA)


def test_structured_output_goes_on_from_a_prefill(client: anthropic.Anthropic) -> None:
    wanted = {"format": {"type": "json_schema", "schema": SCHEMA}}
    begun = '{"city": "Os'
    turns = [*SEA, {"role": "assistant", "content": begun}]
    message = create(client, messages=turns, output_config=wanted, max_tokens=100)
    whole = json.loads(begun + message.content[0].text)
    jsonschema.validate(whole, SCHEMA)
    assert whole["city"].startswith("Os")


def test_errors_are_the_clients_classes(client: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.NotFoundError, match="llmrun pull"):
        create(client, model="nobody:1b")
    with pytest.raises(anthropic.BadRequestError, match=r"messages\.0\.role"):
        create(client, messages=[{"role": "robot", "content": "Hi"}])
    with pytest.raises(anthropic.BadRequestError, match="2048") as long:
        create(client, messages=[{"role": "user", "content": "word " * 4000}])
    assert long.value.error_code == "context_length_exceeded"


def test_models_are_listed(client: anthropic.Anthropic) -> None:
    (model,) = client.models.list()
    assert (model.id, model.max_input_tokens) == (DEFAULT_MODEL, 8192)


def test_answer_that_the_daemons_own_time_ends_says_so_and_no_window_is_full(
    home: Path, tmp_path: Path
) -> None:
    running = Daemon(linked_home(home, tmp_path / "own"), LLMRUN_CTX="8192", LLMRUN_TIME_LIMIT="1")
    try:
        endless = f"FROM {DEFAULT_MODEL}\nPARAMETER ignore_eos true"
        made = running.http.post("/api/create", json={"model": "endless", "modelfile": endless})
        assert made.status_code == 200, made.text
        running.http.post("/api/generate", json={"model": "endless"})  # loading takes its time too
        # A text that repeats itself is guessed.
        asked = ask(model="endless", max_tokens=7000, extra_body={"temperature": 1})
        with anthropic.Anthropic(base_url=running.url, api_key="none", max_retries=0, timeout=60) as client:
            whole = client.messages.create(**asked)
            with client.messages.stream(**asked) as parts:
                last = [event for event in parts if event.type == "message_delta"][-1]
    finally:
        running.close()
    assert (whole.stop_reason, last.delta.stop_reason) == ("max_tokens", "max_tokens")
    assert 0 < whole.usage.output_tokens < 7000
    for told in (whole.model_extra, last.model_extra):
        assert told is not None
        assert told["limit"] == "time"
