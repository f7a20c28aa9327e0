from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmrun.api.ollama.replies import Head, Place, Reply, Stream, done_at_once, generated, said
from llmrun.types import (
    CallArguments,
    CallStarted,
    Event,
    Finished,
    Reasoning,
    Started,
    Stopped,
    Text,
    Timings,
    Usage,
)
from tests.api.scripted import AGENT, answer, token

NOW = "2026-01-02T03:04:05Z"
HEAD = Head("tiny", lambda: NOW)
SHARED = {"model": "tiny", "created_at": NOW}
TIMES = Timings(queue_ms=7.0, prefill_ms=20.0, decode_ms=30.0, ttft_ms=27.0, itl_ms=15.0, load_ms=5.5)
METRICS = {
    "total_duration": 57_000_000,
    "load_duration": 5_500_000,
    "prompt_eval_count": 5,
    "prompt_eval_duration": 20_000_000,
    "eval_count": 2,
    "eval_duration": 30_000_000,
    "timings": {**msgspec.to_builtins(TIMES), "cached_tokens": 2, "drafted_tokens": 5, "accepted_tokens": 3},
}
CALLS = [
    {
        "id": "call_a",
        "function": {"index": 0, "name": "look", "arguments": {"at": "sea", "n": 12345678901234567890123}},
    },
    {"id": "call_b", "function": {"index": 1, "name": "wait", "arguments": {}}},
]


def hello(reason: str = "stop") -> list[Event]:
    *events, last = answer("Hello", " wörld", reason=reason)
    assert isinstance(last, Finished)
    usage = msgspec.structs.replace(last.usage, drafted=5, accepted=3)
    return [*events, Finished(usage, TIMES)]


def whole(events: list[Event], place: Place = generated, logprobs: bool = False) -> dict[str, Any]:
    reply = Reply(HEAD, place, logprobs)
    for event in events:
        reply.add(0, event)
    decoded: dict[str, Any] = json.loads(msgspec.json.encode(reply.body()))
    return decoded


def streamed(events: list[Event], place: Place = generated, logprobs: bool = False) -> list[dict[str, Any]]:
    stream = Stream(HEAD, place, logprobs)
    sent = b"".join(stream.event(0, event) for event in events) + stream.end()
    assert sent.endswith(b"\n")
    # The official client splits as str.splitlines does.
    return [json.loads(part) for part in sent.decode().splitlines()]


def test_generate_reply_golden() -> None:
    assert whole(hello()) == {
        **SHARED,
        "response": "Hello wörld",
        "done": True,
        "done_reason": "stop",
        **METRICS,
    }


def test_generate_stream_golden() -> None:
    assert streamed(hello("length")) == [
        {**SHARED, "response": "Hello", "done": False},
        {**SHARED, "response": " wörld", "done": False},
        {**SHARED, "response": "", "done": True, "done_reason": "length", **METRICS},
    ]


def test_chat_reply_golden() -> None:
    assert whole(hello(), said) == {
        **SHARED,
        "message": {"role": "assistant", "content": "Hello wörld"},
        "done": True,
        "done_reason": "stop",
        **METRICS,
    }


def test_chat_stream_golden() -> None:
    assert streamed(hello(), said) == [
        {**SHARED, "message": {"role": "assistant", "content": "Hello"}, "done": False},
        {**SHARED, "message": {"role": "assistant", "content": " wörld"}, "done": False},
        {
            **SHARED,
            "message": {"role": "assistant", "content": ""},
            "done": True,
            "done_reason": "stop",
            **METRICS,
        },
    ]


def test_chat_reply_with_thinking_and_calls_golden() -> None:
    reply = whole(AGENT, said)
    assert reply["message"] == {
        "role": "assistant",
        "content": "I look.",
        "thinking": "Look twice.",
        "tool_calls": CALLS,
    }
    assert reply["done_reason"] == "stop"


def test_chat_stream_with_thinking_and_calls_each_call_comes_whole() -> None:
    *lines, last = streamed(AGENT, said)
    assert [line["message"] for line in lines] == [
        {"role": "assistant", "content": "", "thinking": "Look "},
        {"role": "assistant", "content": "", "thinking": "twice."},
        {"role": "assistant", "content": "I "},
        {"role": "assistant", "content": "look."},
        {"role": "assistant", "content": "", "tool_calls": CALLS[:1]},
        {"role": "assistant", "content": "", "tool_calls": CALLS[1:]},
    ]
    assert (last["message"], last["done_reason"]) == ({"role": "assistant", "content": ""}, "stop")


def test_generate_reply_with_thinking() -> None:
    events = [event for event in AGENT if not isinstance(event, CallStarted | CallArguments)]
    reply = whole(events)
    assert (reply["thinking"], reply["response"]) == ("Look twice.", "I look.")
    assert [line.get("thinking") for line in streamed(events)][:3] == ["Look ", "twice.", None]


@pytest.mark.parametrize("arguments", ["", '{"at": "s'])
def test_call_that_the_limit_cut_is_not_shown(arguments: str) -> None:
    events: list[Event] = [
        Started(5, 42),
        CallStarted(0, 0, "call_a", "look"),
        CallArguments(0, 0, arguments),
        Stopped(0, "length"),
        Finished(Usage(prompt=5, completion=9), TIMES),
    ]
    reply = whole(events, said)
    assert "tool_calls" not in reply["message"]
    assert reply["done_reason"] == "length"
    (only,) = streamed(events, said)
    assert (only["message"]["content"], only["done_reason"]) == ("", "length")


def test_done_at_once_golden() -> None:
    assert done_at_once(HEAD, said, "load") == {
        **SHARED,
        "message": {"role": "assistant", "content": ""},
        "done": True,
        "done_reason": "load",
    }


def test_logprobs_are_the_same_streamed_and_whole() -> None:
    part = (token(b"\xf0\x9f", -1.0), token(b"\x99\x82", float("-inf"), ("x", -2.0)))
    events: list[Event] = [
        Started(5, 42),
        Reasoning(0, "hm", (token("hm"),)),
        Text(0, "", part[:1]),
        Text(0, "🙂", part[1:]),
        Stopped(0, "stop"),
        Finished(Usage(prompt=5, completion=2), TIMES),
    ]
    records = whole(events, logprobs=True)["logprobs"]
    lines = streamed(events, logprobs=True)
    assert [record for one in lines for record in one.get("logprobs", [])] == records
    assert records == [
        {"token": "hm", "logprob": -0.5, "bytes": [0x68, 0x6D], "top_logprobs": []},
        {"token": "\\xf0\\x9f", "logprob": -1.0, "bytes": [0xF0, 0x9F], "top_logprobs": []},
        {
            "token": "\\x99\\x82",
            "logprob": -9999.0,
            "bytes": [0x99, 0x82],
            "top_logprobs": [{"token": "x", "logprob": -2.0, "bytes": [0x78]}],
        },
    ]
    assert not any("logprobs" in one for one in streamed(events))
    assert "logprobs" not in whole(events)


def test_one_token_has_a_duration_that_clients_can_divide_by() -> None:
    times = msgspec.structs.replace(TIMES, decode_ms=0.0)
    events = [*answer("x")[:-1], Finished(Usage(prompt=1, completion=1), times)]
    assert whole(events)["eval_duration"] == 1


def test_context_is_on_the_last_object_where_it_was_wanted() -> None:
    events = [Stopped(0, "stop", None, (1, 2, 3)) if isinstance(e, Stopped) else e for e in hello()]
    assert whole(events)["context"] == [1, 2, 3]
    *pieces, last = streamed(events)
    assert last["context"] == [1, 2, 3]
    assert not any("context" in one for one in pieces)


def test_empty_text_sends_nothing() -> None:
    assert Stream(HEAD, generated, False).event(0, Text(0, "")) == b""


def test_ping_is_a_line_without_text() -> None:
    assert msgspec.json.decode(Stream(HEAD, generated, False).ping()) == {
        **SHARED,
        "response": "",
        "done": False,
    }


@given(st.lists(st.text()))
def test_any_text_arrives_whole_in_lines_however_a_client_splits_them(pieces: list[str]) -> None:
    lines = streamed(answer(*pieces))
    assert "".join(one["response"] for one in lines) == "".join(pieces)
    assert [one["done"] for one in lines] == [False] * (len(lines) - 1) + [True]
