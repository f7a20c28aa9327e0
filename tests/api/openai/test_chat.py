from __future__ import annotations

from typing import Any

import msgspec
import pytest

from llmrun.api.openai.bodies import ChatBody
from llmrun.api.openai.chat import ChatReply, ChatStream, to_request
from llmrun.api.openai.reply import FINGERPRINT, Head
from llmrun.api.timings import llama_timings
from llmrun.types import (
    AdapterScale,
    Event,
    Finished,
    GenerateRequest,
    Message,
    Options,
    Pace,
    Started,
    Stopped,
    Text,
    Thinking,
    Usage,
)
from tests.api.scripted import TIMINGS, answer, token

HEAD = Head("chatcmpl-1", 1_700_000_000, "tiny:1m")
ASKED: dict[str, Any] = {"model": "tiny:1m", "messages": [{"role": "user", "content": "Hi"}]}
SHARED = {
    "id": "chatcmpl-1",
    "created": 1_700_000_000,
    "model": "tiny:1m",
    "system_fingerprint": FINGERPRINT,
}
TIMES = llama_timings(Usage(prompt=5, completion=2, cached=2), TIMINGS)


def body(**fields: Any) -> ChatBody:
    return ChatBody.parse({**ASKED, **fields})


def streamed(events: list[Event], **fields: Any) -> list[Any]:
    """The data of every event of the stream; `[DONE]` as it is."""
    stream = ChatStream(HEAD, body(stream=True, **fields))
    sent = b"".join(stream.event(0, event) for event in events) + stream.end()
    assert sent.endswith(b"\n\n")
    data = [line.removeprefix(b"data: ") for line in sent.removesuffix(b"\n\n").split(b"\n\n")]
    return [item if item == b"[DONE]" else msgspec.json.decode(item) for item in data]


def whole(events: list[Event], **fields: Any) -> dict[str, Any]:
    reply = ChatReply(HEAD, body(**fields))
    for event in events:
        reply.add(0, event)
    decoded: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(reply.body()))
    return decoded


def test_to_request_every_field_reaches_the_request() -> None:
    asked = body(
        messages=[
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "name": "Ann", "content": [{"type": "text", "text": t} for t in ("One", "Two")]},
            {"role": "assistant", "content": "Yes."},
            {"role": "user", "content": ""},
        ],
        temperature=0,
        top_p=0.5,
        top_k=3,
        min_p=0.1,
        typical_p=0.9,
        repeat_penalty=1.1,
        repeat_last_n=-1,
        presence_penalty=0.2,
        frequency_penalty=-0.3,
        seed=7,
        max_completion_tokens=8,
        max_tokens=8,
        stop="\n",
        logit_bias={"12": -100, "13": 1.5},
        n=2,
        logprobs=True,
        top_logprobs=3,
        chat_template_kwargs={"enable_thinking": False},
    )
    assert to_request(asked, "req_1") == GenerateRequest(
        id="req_1",
        model="tiny:1m",
        messages=(
            Message(role="system", content="Be brief."),
            Message(role="user", content="One\nTwo", name="Ann"),
            Message(role="assistant", content="Yes."),
            Message(role="user", content=""),
        ),
        options=Options(
            temperature=0.0,
            top_p=0.5,
            top_k=3,
            min_p=0.1,
            typical_p=0.9,
            repeat_penalty=1.1,
            repeat_last_n=-1,
            presence_penalty=0.2,
            frequency_penalty=-0.3,
            seed=7,
            max_tokens=8,
            stop=("\n",),
        ),
        logit_bias={12: -100.0, 13: 1.5},
        n=2,
        logprobs=3,
        template_kwargs={"enable_thinking": False},
    )


def test_to_request_nothing_set_leaves_everything_to_the_model() -> None:
    request = to_request(body(stop=[], max_tokens=None), "req_1")
    assert request.options == Options()
    assert request.n == 1
    assert request.logprobs is None


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_to_request_either_name_of_the_limit_is_honoured(name: str) -> None:
    assert to_request(body(**{name: 8}), "req_1").options.max_tokens == 8


def test_to_request_logprobs_without_alternatives_asks_for_none() -> None:
    assert to_request(body(logprobs=True), "req_1").logprobs == 0


def test_to_request_last_message_of_the_assistant_is_continued() -> None:
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Well,"}]
    request = to_request(body(messages=turns), "req_1")
    assert request.continues
    assert request.messages is not None
    assert request.messages[-1] == Message(role="assistant", content="Well,")
    assert not to_request(body(messages=[*turns, turns[0]]), "req_1").continues


def test_to_request_begun_answer_may_have_a_format() -> None:
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "{"}]
    request = to_request(body(messages=turns, response_format={"type": "json_object"}), "req_1")
    assert request.continues
    assert request.output_format is not None


@pytest.mark.parametrize(
    ("effort", "wanted"),
    [
        (None, None),
        ("none", Thinking(enabled=False, field="reasoning_effort")),
        ("minimal", Thinking(enabled=True, effort="minimal", field="reasoning_effort")),
        ("high", Thinking(enabled=True, effort="high", field="reasoning_effort")),
    ],
)
def test_to_request_reasoning_effort_is_what_is_said_of_thinking(
    effort: str | None, wanted: Thinking | None
) -> None:
    assert to_request(body(reasoning_effort=effort), "req_1").thinking == wanted


@pytest.mark.parametrize(
    ("think", "wanted"),
    [
        (True, Thinking(enabled=True, budget=9, field="think")),
        (False, Thinking(enabled=False, field="think")),
    ],
)
def test_to_request_think_turns_reasoning_on_or_off(think: bool, wanted: Thinking) -> None:
    assert to_request(body(think=think, thinking_budget_tokens=9), "req_1").thinking == wanted


def test_reply_one_answer_golden() -> None:
    assert whole(answer("Hello", " wörld")) == {
        **SHARED,
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hello wörld", "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 5,
            "completion_tokens": 2,
            "total_tokens": 7,
            "prompt_tokens_details": {"cached_tokens": 2},
            "completion_tokens_details": {
                "reasoning_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        },
        "timings": TIMES,
    }


def test_reply_two_answers_interleaved_are_kept_apart_and_both_counted() -> None:
    events: list[Event] = [
        Started(5, 42),
        Text(1, "b1"),
        Text(0, "a1"),
        Stopped(1, "length"),
        Text(0, "a2"),
        Stopped(0, "stop"),
        Finished(Usage(prompt=5, completion=9), TIMINGS),
    ]
    reply = whole(events, n=2)
    assert [(c["index"], c["message"]["content"], c["finish_reason"]) for c in reply["choices"]] == [
        (0, "a1a2", "stop"),
        (1, "b1", "length"),
    ]
    assert reply["usage"]["completion_tokens"] == 9


def test_stream_one_answer_golden() -> None:
    def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return {**SHARED, "object": "chat.completion.chunk", "choices": [choice]}

    assert streamed(answer("Hello", " wörld")) == [
        chunk({"role": "assistant", "content": "", "refusal": None}),
        chunk({"content": "Hello"}),
        chunk({"content": " wörld"}),
        {**chunk({}, "stop"), "timings": TIMES},
        b"[DONE]",
    ]


def test_stream_with_usage_ends_in_a_chunk_without_choices() -> None:
    *chunks, usage, done = streamed(answer("Hello"), stream_options={"include_usage": True})
    assert done == b"[DONE]"
    assert all(chunk["usage"] is None for chunk in chunks)
    assert not any("timings" in chunk for chunk in chunks)
    assert usage["choices"] == []
    assert usage["usage"]["total_tokens"] == 6
    assert usage["timings"] == llama_timings(Usage(prompt=5, completion=1, cached=2), TIMINGS)


def test_stream_two_answers_each_has_one_role_and_one_finish_reason() -> None:
    *chunks, _ = streamed(answer("Hello", n=2), n=2)
    choices = [chunk["choices"][0] for chunk in chunks]
    assert [c["index"] for c in choices if "role" in c["delta"]] == [0, 1]
    assert [c["index"] for c in choices if c["finish_reason"]] == [0, 1]
    assert choices[-1]["finish_reason"]


def test_stream_broken_after_the_answer_shows_no_finish_reason() -> None:
    stream = ChatStream(HEAD, body(stream=True))
    events = answer("Hello")[:-1]
    assert isinstance(events[-1], Stopped)
    sent = b"".join(stream.event(0, event) for event in events)
    assert b'"finish_reason":"stop"' not in sent


def test_stream_empty_text_sends_nothing() -> None:
    stream = ChatStream(HEAD, body(stream=True))
    assert stream.event(0, Text(0, "")) == b""


def test_stream_says_what_the_reply_says() -> None:
    """The same events, streamed and whole: same text, same log probabilities."""
    part = (token(b"\xf0\x9f", -1.0), token(b"\x99\x82", -0.25, ("x", -2.0)))
    events: list[Event] = [
        Started(5, 42),
        Text(0, "", part[:1]),
        Text(0, "🙂", part[1:]),
        Text(0, " end", (token(" end"),)),
        Stopped(0, "stop"),
        Finished(Usage(prompt=5, completion=3), TIMINGS),
    ]
    chunks = [chunk["choices"][0] for chunk in streamed(events, logprobs=True) if chunk != b"[DONE]"]
    reply = whole(events, logprobs=True)["choices"][0]
    assert "".join(c["delta"].get("content", "") for c in chunks) == reply["message"]["content"] == "🙂 end"
    assert [record for c in chunks if c["logprobs"] for record in c["logprobs"]["content"]] == reply[
        "logprobs"
    ]["content"]


def test_logprobs_nobody_asked_for_are_not_sent() -> None:
    events: list[Event] = [
        Started(1, 1),
        Text(0, "a", (token("a"),)),
        Stopped(0, "stop"),
        Finished(Usage(prompt=1, completion=1), TIMINGS),
    ]
    assert whole(events)["choices"][0]["logprobs"] is None
    assert all(c["choices"][0]["logprobs"] is None for c in streamed(events)[:-1])


def test_to_request_of_llama_servers_web_page() -> None:
    asked = body(
        stream=True,
        return_progress=True,
        sse_ping_interval=1,
        reasoning_format="auto",
        reasoning_control=True,
        timings_per_token=True,
        thinking_budget_tokens=512,
        samplers=["top_k", "temperature"],
        dynatemp_range=0.1,
        backend_sampling=False,
    )
    request = to_request(asked, "req_1")
    assert request.progress
    assert request.thinking == Thinking(budget=512, field="reasoning_effort")
    assert request.options.samplers == ("top_k", "temperature")
    assert to_request(body(thinking_budget_tokens=-1), "req_1").thinking is None
    assert not to_request(body(return_progress=True), "req_1").progress


def test_to_request_of_an_editors_plugin() -> None:
    warming = body(n_predict=0, samplers=[], t_max_prompt_ms=500, t_max_predict_ms=1, response_fields=[""])
    request = to_request(warming, "req_1")
    assert (request.options.max_tokens, request.options.samplers) == (0, ())
    assert request.line_seconds == 0.001
    asked = body(max_tokens=-1, samplers="edkypmxt", dry_penalty_last_n=-1, lora=[{"id": 0, "scale": 0.5}])
    request = to_request(asked, "req_1")
    assert request.options.max_tokens == 2**31 - 1
    assert request.options.samplers is not None
    assert request.options.samplers[:2] == ("penalties", "dry")
    assert request.adapters == (AdapterScale(id=0, scale=0.5),)


def test_stream_timings_in_each_chunk_where_wanted() -> None:
    events = answer("Hel", "lo")
    for place, tokens in ((2, 1), (4, 3)):  # in front of each text
        events.insert(place, Pace(0, tokens, tokens * 10.0))
    chunks = streamed(events, timings_per_token=True)
    counts = [chunk["timings"]["predicted_n"] for chunk in chunks[:-2]]
    assert counts == [0, 1, 3]
    assert (chunks[2]["timings"]["prompt_n"], chunks[2]["timings"]["cache_n"]) == (3, 2)
    assert chunks[2]["timings"]["predicted_per_second"] == 100.0
    assert not any("timings" in chunk for chunk in streamed(events)[:-2])


def test_stream_progress_where_wanted() -> None:
    events = answer("Hello")
    chunks = streamed(events, return_progress=True)
    (progress,) = [chunk["prompt_progress"] for chunk in chunks[:-1] if "prompt_progress" in chunk]
    assert progress == {"total": 5, "cache": 2, "processed": 5, "time_ms": 0.0}
    assert not any("prompt_progress" in chunk for chunk in streamed(events)[:-1])
