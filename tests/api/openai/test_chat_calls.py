"""What a chat completion looks like where the model reasons and calls tools: golden, whole and streamed."""

from __future__ import annotations

from typing import Any

from llmrun.api.timings import llama_timings
from llmrun.types import CallArguments, CallStarted, Event, Finished, Reasoning, Started, Stopped, Text, Usage
from tests.api.openai.test_chat import SHARED, streamed, whole
from tests.api.scripted import TIMINGS, token

TOOLS = [{"type": "function", "function": {"name": "weather"}}]

THOUGHT_AND_CALLED: list[Event] = [
    Started(5, 42),
    Reasoning(0, "They"),
    Reasoning(0, " ask."),
    Text(0, "Let me see."),
    CallStarted(0, 0, "call_a", "weather"),
    CallArguments(0, 0, '{"city":'),
    CallArguments(0, 0, '"Köln"}'),
    CallStarted(0, 1, "call_b", "time"),
    CallArguments(0, 1, "{}"),
    Stopped(0, "tool_calls"),
    Finished(Usage(prompt=5, completion=20, cached=2, reasoning=3), TIMINGS),
]
ONLY_CALLED: list[Event] = [
    Started(5, 42),
    CallStarted(0, 0, "call_a", "weather"),
    CallArguments(0, 0, '{"city"'),
    Stopped(0, "length"),
    Finished(Usage(prompt=5, completion=4), TIMINGS),
]
TIMES = llama_timings(Usage(prompt=5, completion=20, cached=2), TIMINGS)


def call(id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_reply_with_reasoning_and_calls_golden() -> None:
    assert whole(THOUGHT_AND_CALLED, tools=TOOLS) == {
        **SHARED,
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "Let me see.",
                    "refusal": None,
                    "reasoning_content": "They ask.",
                    "tool_calls": [
                        call("call_a", "weather", '{"city":"Köln"}'),
                        call("call_b", "time", "{}"),
                    ],
                },
                "logprobs": None,
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {
            "prompt_tokens": 5,
            "completion_tokens": 20,
            "total_tokens": 25,
            "prompt_tokens_details": {"cached_tokens": 2},
            "completion_tokens_details": {
                "reasoning_tokens": 3,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        },
        "timings": TIMES,
    }


def test_stream_with_reasoning_and_calls_golden() -> None:
    def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return {**SHARED, "object": "chat.completion.chunk", "choices": [choice]}

    def part(index: int, **fields: Any) -> dict[str, Any]:
        return chunk({"tool_calls": [{"index": index, **fields}]})

    assert streamed(THOUGHT_AND_CALLED, tools=TOOLS) == [
        chunk({"role": "assistant", "content": None, "refusal": None}),
        chunk({"reasoning_content": "They"}),
        chunk({"reasoning_content": " ask."}),
        chunk({"content": "Let me see."}),
        part(0, **call("call_a", "weather", "")),
        part(0, function={"arguments": '{"city":'}),
        part(0, function={"arguments": '"Köln"}'}),
        part(1, **call("call_b", "time", "")),
        part(1, function={"arguments": "{}"}),
        {
            **chunk({}, "tool_calls"),
            "timings": TIMES,
        },
        b"[DONE]",
    ]


def test_call_cut_by_the_limit_is_shown_as_far_as_it_came_and_called_length() -> None:
    choice = whole(ONLY_CALLED, tools=TOOLS)["choices"][0]
    assert choice["finish_reason"] == "length"
    assert choice["message"]["content"] is None
    assert choice["message"]["tool_calls"] == [call("call_a", "weather", '{"city"')]
    *_, last, _done = streamed(ONLY_CALLED, tools=TOOLS)
    assert last["choices"][0]["finish_reason"] == "length"


def test_logprobs_beside_calls_are_those_of_the_text() -> None:
    events: list[Event] = [
        Started(1, 1),
        Reasoning(0, "hm", (token("hm"),)),
        Text(0, "a", (token("a"),)),
        *ONLY_CALLED[1:],
    ]
    reply = whole(events, tools=TOOLS, logprobs=True)["choices"][0]
    assert [record["token"] for record in reply["logprobs"]["content"]] == ["a"]
    chunks = [c["choices"][0] for c in streamed(events, tools=TOOLS, logprobs=True)[:-1]]
    assert [r["token"] for c in chunks if c["logprobs"] for r in c["logprobs"]["content"]] == ["a"]
