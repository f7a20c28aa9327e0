from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from llmrun.api.llamacpp.bodies import LlamaCompletionBody
from llmrun.api.llamacpp.replies import Asked, CompletionReply, CompletionStream
from llmrun.types import (
    Event,
    Finished,
    Limit,
    Pace,
    Progress,
    Rendered,
    SamplerStage,
    Started,
    Stopped,
    Text,
    TopLogprob,
    Usage,
)
from tests.api.scripted import TIMINGS, token

PROMPT = (1, 2, 3)


def asked(**fields: Any) -> Asked:
    body = LlamaCompletionBody.parse({"prompt": fields.pop("prompt", "Once"), **fields})
    settings = [{"temperature": 0.5}] * len(body.prompt)
    return Asked(body, "tiny:1m", settings, lambda: 8)


def told(
    *texts: Text, reason: str = "stop", stop: str | None = None, n: int = 1, limit: Limit | None = None
) -> list[Event]:
    """A request whose answers are made of `texts`; its prompt has three tokens, one of them cached."""
    events: list[Event] = [Started(3, 42), Progress(3, 3, 1, 20.0), *texts, Rendered("<s>Once")]
    for index in range(n):
        made = tuple(t for text in texts if text.index == index for t in text.tokens)
        events.append(Stopped(index, reason, stop, PROMPT + made, limit))  # type: ignore[arg-type]
    made_in_all = sum(len(text.tokens) for text in texts)
    return [*events, Finished(Usage(prompt=3, completion=made_in_all, cached=1), TIMINGS)]


HELLO = (Text(0, "Hel", tokens=(5,)), Text(0, "lo\n", tokens=(6, 7)))


def whole(asked: Asked, *requests: list[Event]) -> Any:
    reply = CompletionReply(asked)
    for number, events in enumerate(requests):
        for event in events:
            reply.add(number, event)
    return msgspec.json.decode(msgspec.json.encode(reply.body()))


def streamed(asked: Asked, *requests: list[Event]) -> list[dict[str, Any]]:
    stream = CompletionStream(asked)
    sent = b"".join(stream.event(number, event) for number, events in enumerate(requests) for event in events)
    sent += stream.end()
    return [msgspec.json.decode(part.removeprefix(b"data: ")) for part in sent.split(b"\n\n")[:-1]]


def test_reply_golden() -> None:
    assert whole(asked(return_tokens=True), told(*HELLO)) == {
        "index": 0,
        "content": "Hello\n",
        "tokens": [5, 6, 7],
        "id_slot": -1,
        "stop": True,
        "model": "tiny:1m",
        "tokens_predicted": 3,
        "tokens_evaluated": 3,
        "generation_settings": {"temperature": 0.5, "n_ctx": 8, "seed": 42},
        "prompt": "<s>Once",
        "has_new_line": True,
        "truncated": False,
        "stop_type": "eos",
        "stopping_word": "",
        "tokens_cached": 1,
        "timings": {
            "cache_n": 1,
            "prompt_n": 2,
            "prompt_ms": 20.0,
            "prompt_per_token_ms": 10.0,
            "prompt_per_second": 100.0,
            "predicted_n": 3,
            "predicted_ms": 30.0,
            "predicted_per_token_ms": 10.0,
            "predicted_per_second": 100.0,
            "queue_ms": 1.0,
            "prefill_ms": 20.0,
            "decode_ms": 30.0,
            "ttft_ms": 21.0,
            "itl_ms": 15.0,
            "load_ms": 0.0,
            "itl_p50_ms": 0.0,
            "itl_p95_ms": 0.0,
            "itl_max_ms": 0.0,
        },
    }


@pytest.mark.parametrize(
    ("reason", "stop", "stop_type", "word"),
    [("stop", None, "eos", ""), ("stop", "END", "word", "END"), ("length", None, "limit", "")],
)
def test_reply_says_how_the_answer_stopped(reason: str, stop: str | None, stop_type: str, word: str) -> None:
    reply = whole(asked(), told(*HELLO, reason=reason, stop=stop))
    assert (reply["stop_type"], reply["stopping_word"], reply["truncated"]) == (stop_type, word, False)


def test_reply_answer_that_filled_the_context_is_truncated() -> None:
    full = (Text(0, "hello", tokens=(5, 6, 7, 8, 9)),)
    assert whole(asked(), told(*full, reason="length", limit="context"))["truncated"]
    assert not whole(asked(), told(*full, reason="length", limit="time"))["truncated"]
    assert not whole(asked(), told(*full, reason="stop"))["truncated"]


def test_reply_tokens_only_where_wanted() -> None:
    assert whole(asked(), told(*HELLO))["tokens"] == []


def test_reply_several_answers_are_a_list_in_order() -> None:
    both = [Text(0, "a", tokens=(5,)), Text(1, "b", tokens=(6,))]
    reply = whole(asked(prompt=["x", "y"], n_cmpl=2), told(*both, n=2), told(*both, n=2))
    assert [(each["index"], each["content"]) for each in reply] == [(0, "a"), (1, "b"), (2, "a"), (3, "b")]
    assert [each["tokens_predicted"] for each in reply] == [1, 1, 1, 1]
    assert [each["generation_settings"]["seed"] for each in reply] == [42, 43, 42, 43]


def test_reply_fields_that_are_wanted_alone() -> None:
    wanted = ["content", "timings/prompt_n", "generation_settings/seed", "nothing/here", "timings/none"]
    assert whole(asked(response_fields=wanted), told(*HELLO)) == {
        "content": "Hello\n",
        "timings/prompt_n": 2,
        "generation_settings/seed": 42,
    }


def test_reply_probabilities_have_each_token_and_its_rivals() -> None:
    sure = Text(0, "a", (token(b"\xf0\x9f", -0.5, ("b", -2.0)),), (5,))
    assert whole(asked(n_probs=1), told(sure))["completion_probabilities"] == [
        {
            "id": 7,
            "token": "",
            "bytes": [0xF0, 0x9F],
            "logprob": -0.5,
            "top_logprobs": [{"id": 0, "token": "b", "bytes": [98], "logprob": -2.0}],
        }
    ]


def test_stream_parts_and_end_golden() -> None:
    first, second, last = streamed(asked(stream=True), told(*HELLO))
    part = {"index": 0, "stop": False, "id_slot": -1, "tokens_evaluated": 3}
    assert first == {**part, "content": "Hel", "tokens": [5], "tokens_predicted": 1}
    assert second == {**part, "content": "lo\n", "tokens": [6, 7], "tokens_predicted": 3}
    assert last == {**whole(asked(), told(*HELLO)), "content": "", "tokens": []}


def test_stream_progress_where_wanted() -> None:
    parts = streamed(asked(stream=True, return_progress=True), told(*HELLO))
    assert parts[0]["prompt_progress"] == {"total": 3, "cache": 1, "processed": 3, "time_ms": 20.0}
    assert (parts[0]["content"], parts[0]["stop"]) == ("", False)
    assert not any("prompt_progress" in part for part in parts[1:])


def test_stream_timings_in_each_part_where_wanted() -> None:
    first_text, second_text = HELLO
    events = told(*HELLO)
    events.insert(events.index(first_text), Pace(0, 1, 0.0))
    events.insert(events.index(second_text), Pace(0, 3, 40.0))
    first, second, _ = streamed(asked(stream=True, timings_per_token=True), events)
    assert (first["timings"]["prompt_n"], first["timings"]["prompt_ms"]) == (2, 20.0)
    assert (second["timings"]["cache_n"], second["timings"]["predicted_n"]) == (1, 3)
    assert (second["timings"]["predicted_ms"], second["timings"]["predicted_per_second"]) == (40.0, 75.0)


HALF = math.log(0.5)
SAMPLED = msgspec.structs.replace(
    token("a", -1.0, ("b", -2.0)),
    stages=(
        SamplerStage("top_k", 2, math.log(0.75), (TopLogprob(7, b"a", math.log(0.75)),)),
        SamplerStage("draw", 2, HALF, (TopLogprob(7, b"a", HALF), TopLogprob(0, b"b", HALF))),
    ),
)


def test_reply_probabilities_after_the_samplers_are_those_of_the_last() -> None:
    sent = told(Text(0, "ac", (SAMPLED, token("c")), (7, 7)))
    first, forced = whole(asked(n_probs=2, post_sampling_probs=True), sent)["completion_probabilities"]
    a, b = ({"id": 7, "token": "a", "bytes": [97]}, {"id": 0, "token": "b", "bytes": [98]})
    assert first == {**a, "prob": 0.5, "top_probs": [{**a, "prob": 0.5}, {**b, "prob": 0.5}]}
    assert (forced["prob"], [top["token"] for top in forced["top_probs"]]) == (1.0, ["c"])


def test_reply_sampler_probabilities_have_each_sampler_beside_the_models_own() -> None:
    sent = told(Text(0, "a", (SAMPLED,), (7,)))
    (record,) = whole(asked(n_probs=2, sampler_probs=True), sent)["completion_probabilities"]
    assert record["logprob"] == -1.0
    assert [(stage["name"], stage["left"], stage["prob"]) for stage in record["samplers"]] == [
        ("top_k", 2, pytest.approx(0.75)),
        ("draw", 2, 0.5),
    ]
    assert [top["prob"] for top in record["samplers"][0]["top_probs"]] == [pytest.approx(0.75)]


def test_stream_probabilities_come_with_their_text() -> None:
    said = (Text(0, "", (token("a"),), (5,)), Text(0, "ab", (token("b"),), (6,)))
    parts = streamed(asked(stream=True, n_probs=1), told(*said))
    records: Sequence[Any] = [part["completion_probabilities"] for part in parts[:-1]]
    assert [[record["token"] for record in each] for each in records] == [["a"], ["b"]]
    assert "completion_probabilities" not in parts[-1]


def test_stream_several_answers_each_end_once() -> None:
    both = [Text(0, "a", tokens=(5,)), Text(1, "b", tokens=(6,))]
    parts = streamed(asked(stream=True, prompt=["x", "y"], n_cmpl=2), told(*both, n=2), told(*both, n=2))
    assert [part["index"] for part in parts if part["stop"]] == [0, 1, 2, 3]
    assert [part["index"] for part in parts if not part["stop"]] == [0, 1, 2, 3]
