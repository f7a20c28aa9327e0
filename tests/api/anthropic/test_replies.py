from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmrun.api import sse
from llmrun.api.anthropic.bodies import MessagesBody
from llmrun.api.anthropic.replies import Head, MessageReply, MessageStream
from llmrun.api.input_tokens import InputTokens
from llmrun.types import (
    CallArguments,
    CallStarted,
    Event,
    Finished,
    Limit,
    Progress,
    Reasoning,
    Started,
    Stopped,
    Text,
    Tokenized,
    Usage,
)
from tests.api.scripted import AGENT, TIMINGS, answer

HEAD = Head("msg_1", "tiny:1m")
ASKED: dict[str, Any] = {
    "model": "tiny:1m",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "Hi"}],
}
TIMES = msgspec.to_builtins(TIMINGS)
USAGE = {
    "input_tokens": 3,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 2,
    "output_tokens": 2,
    "output_tokens_details": {"thinking_tokens": 0},
    "service_tier": "standard",
}


def body(**fields: Any) -> MessagesBody:
    return MessagesBody.parse({**ASKED, **fields})


def whole(events: list[Event], **fields: Any) -> dict[str, Any]:
    reply = MessageReply(HEAD, body(**fields))
    for event in events:
        reply.add(0, event)
    return reply.body()


def streamed(events: list[Event], **fields: Any) -> list[Any]:
    """The data of every event, each of the name that its type says."""
    stream = MessageStream(HEAD, body(stream=True, **fields))
    sent = b"".join(stream.event(0, event) for event in events) + stream.end()
    assert sent.endswith(b"\n\n")
    found = []
    for item in sent.decode().removesuffix("\n\n").split("\n\n"):
        name, data = item.split("\n")
        found.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {found[-1]['type']}"
    return found


def ended(reason: Any, completion: int = 2, **fields: Any) -> tuple[Any, Any]:
    events = [Started(5, 42), reason, Finished(Usage(prompt=5, completion=completion), TIMINGS)]
    reply = whole(events, **fields)
    last = streamed(events, **fields)[-2]["delta"]
    assert last == {name: reply[name] for name in ("stop_reason", "stop_sequence")}
    return reply["stop_reason"], reply["stop_sequence"]


def test_reply_golden() -> None:
    assert whole(answer("Hello", " wörld")) == {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "tiny:1m",
        "content": [{"type": "text", "text": "Hello wörld"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": USAGE,
        "timings": TIMES,
    }


def test_stream_golden() -> None:
    first, *rest = streamed(answer("Hello", " wörld"))
    assert first == {
        "type": "message_start",
        "message": {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "tiny:1m",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {**USAGE, "input_tokens": 5, "cache_read_input_tokens": 0, "output_tokens": 0},
        },
    }
    assert rest == [
        {"type": "ping"},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": " wörld"}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": USAGE,
            "timings": TIMES,
        },
        {"type": "message_stop"},
    ]


def test_reply_thinking_text_and_calls_are_blocks_in_order() -> None:
    reply = whole(AGENT)
    thinking, *others = reply["content"]
    assert (thinking["type"], thinking["thinking"]) == ("thinking", "Look twice.")
    assert thinking["signature"]
    assert others == [
        {"type": "text", "text": "I look."},
        {
            "type": "tool_use",
            "id": "call_a",
            "name": "look",
            "input": {"at": "sea", "n": 12345678901234567890123},
        },
        {"type": "tool_use", "id": "call_b", "name": "wait", "input": {}},
    ]
    assert reply["stop_reason"] == "tool_use"
    assert reply["usage"]["output_tokens_details"] == {"thinking_tokens": 9}


def test_stream_thinking_text_and_calls_each_block_ends_before_the_next() -> None:
    changes = [event for event in streamed(AGENT) if event["type"].startswith("content_block")]
    steps = [(e["type"].removeprefix("content_block_"), e["index"]) for e in changes]
    assert steps == [
        *[("start", 0), ("delta", 0), ("delta", 0), ("delta", 0), ("stop", 0)],
        *[("start", 1), ("delta", 1), ("delta", 1), ("stop", 1)],
        *[("start", 2), ("delta", 2), ("delta", 2), ("delta", 2), ("stop", 2)],
        *[("start", 3), ("delta", 3), ("delta", 3), ("stop", 3)],
    ]
    kinds = [e["delta"]["type"] for e in changes if "delta" in e]
    assert kinds[:3] == ["thinking_delta", "thinking_delta", "signature_delta"]
    assert changes[3]["delta"]["signature"] == whole(AGENT)["content"][0]["signature"]
    calls = [e["content_block"] for e in changes if "content_block" in e][2:]
    assert calls == [
        {"type": "tool_use", "id": "call_a", "name": "look", "input": {}},
        {"type": "tool_use", "id": "call_b", "name": "wait", "input": {}},
    ]
    arguments = "".join(e["delta"]["partial_json"] for e in changes if e["index"] == 2 and "delta" in e)
    assert arguments == '{"at": "sea", "n": 12345678901234567890123}'


PIECES = st.lists(
    st.one_of(
        st.builds(Text, st.just(0), st.text(max_size=4)),
        st.builds(Reasoning, st.just(0), st.text(max_size=4)),
        st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),  # a call's arguments
    ),
    max_size=12,
)


def joined(changes: list[Any]) -> list[Any]:
    """The content that a client joins from a stream; blocks must begin and end in turn."""
    content: list[Any] = []
    is_open = False
    for change in changes:
        kind = change["type"]
        if kind == "content_block_start":
            assert (is_open, change["index"]) == (False, len(content))
            is_open = True
            content.append({**change["content_block"], "json": ""})
        elif kind == "content_block_delta":
            assert (is_open, change["index"]) == (True, len(content) - 1)
            delta = {name: value for name, value in change["delta"].items() if name != "type"}
            ((name, value),) = delta.items()
            content[-1][name.removeprefix("partial_")] += value
        elif kind == "content_block_stop":
            is_open = False
    assert not is_open
    for block in content:
        text = block.pop("json")
        if block["type"] == "tool_use":
            block["input"] = json.loads(text)
    return content


@given(PIECES)
def test_stream_joins_to_the_whole_reply_whatever_the_model_does(pieces: list[Any]) -> None:
    events: list[Event] = [Started(5, 42)]
    calls = 0
    for piece in pieces:
        if isinstance(piece, dict):
            text = json.dumps(piece)
            events += [CallStarted(0, calls, f"call_{calls}", "look")]
            events += [CallArguments(0, calls, part) for part in (text[:2], text[2:])]
            calls += 1
        else:
            events.append(piece)
    events += [Stopped(0, "stop"), Finished(Usage(prompt=5, completion=9), TIMINGS)]
    assert joined(streamed(events)) == whole(events)["content"]


def test_thinking_that_is_omitted_has_a_signature_and_no_text() -> None:
    hidden = {"type": "adaptive", "display": "omitted"}
    assert whole(AGENT, thinking=hidden)["content"][0]["thinking"] == ""
    assert whole(AGENT, thinking=hidden)["content"][0]["signature"]
    deltas = [e["delta"].get("type") for e in streamed(AGENT, thinking=hidden) if "delta" in e]
    assert "thinking_delta" not in deltas
    assert "signature_delta" in deltas


def test_end_of_turn() -> None:
    assert ended(Stopped(0, "stop")) == ("end_turn", None)


def test_matched_stop_sequence_is_named_not_reported_as_the_end_of_a_turn() -> None:
    assert ended(Stopped(0, "stop", "\n\n"), stop_sequences=["x", "\n\n"]) == ("stop_sequence", "\n\n")


def test_stop_string_of_the_models_own_is_the_end_of_its_turn() -> None:
    assert ended(Stopped(0, "stop", "<|user|>"), stop_sequences=["x"]) == ("end_turn", None)


@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        ("tokens", "max_tokens"),
        ("context", "model_context_window_exceeded"),
        ("time", "max_tokens"),  # the request's own or the daemon's: the window was not full
        ("lines", "max_tokens"),
    ],
)
def test_only_a_full_context_is_told_as_a_full_context(limit: Limit, reason: str) -> None:
    assert ended(Stopped(0, "length", limit=limit), completion=40) == (reason, None)


@pytest.mark.parametrize(
    ("text", "found"), [("", {}), ('{"at": "s', {}), ('{"at": "sea", "n": [1', {"at": "sea", "n": [1]})]
)
def test_call_that_the_limit_cut_has_what_is_complete(text: str, found: Any) -> None:
    events: list[Event] = [
        Started(5, 42),
        CallStarted(0, 0, "call_a", "look"),
        CallArguments(0, 0, text),
        Stopped(0, "length"),
        Finished(Usage(prompt=5, completion=100), TIMINGS),
    ]
    reply = whole(events)
    assert (reply["content"][0]["input"], reply["stop_reason"]) == (found, "max_tokens")
    assert streamed(events)[-2]["delta"]["stop_reason"] == "max_tokens"


def test_answer_without_a_word_has_no_blocks() -> None:
    events: list[Event] = [
        Started(5, 42),
        Progress(5, 5, 0),
        Stopped(0, "length"),
        Finished(Usage(prompt=5, completion=0), TIMINGS),
    ]
    reply = whole(events, max_tokens=0)
    assert (reply["content"], reply["stop_reason"]) == ([], "max_tokens")
    kinds = [event["type"] for event in streamed(events, max_tokens=0)]
    assert kinds == ["message_start", "ping", "message_delta", "message_stop"]


def test_context_management_is_answered_with_no_edits_applied() -> None:
    asked = {"context_management": {"edits": []}}
    assert whole(answer("Hi"), **asked)["context_management"] == {"applied_edits": []}
    assert streamed(answer("Hi"), **asked)[-2]["context_management"] == {"applied_edits": []}
    assert "context_management" not in whole(answer("Hi"))


def test_ping_before_the_message_begins_is_a_comment() -> None:
    stream = MessageStream(HEAD, body(stream=True))
    assert stream.ping() == sse.PING
    stream.event(0, Started(5, 42))
    assert stream.ping() == b'event: ping\ndata: {"type":"ping"}\n\n'


def test_token_count() -> None:
    count = InputTokens()
    count.add(0, Tokenized((1, 2, 3), (b"a", b"b", b"c")))
    assert count.body() == {"input_tokens": 3}
