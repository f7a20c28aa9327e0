from __future__ import annotations

from typing import Any

import msgspec
import pytest

from llmrun.api.openai.bodies import CompletionBody
from llmrun.api.openai.completions import CompletionReply, CompletionStream, to_requests
from llmrun.api.openai.reply import FINGERPRINT, Head
from llmrun.api.timings import llama_timings
from llmrun.types import (
    Event,
    Finished,
    GenerateRequest,
    Options,
    PromptLogprobs,
    PromptToken,
    Started,
    Stopped,
    Text,
    Timings,
    TopLogprob,
    Usage,
)
from tests.api.scripted import TIMINGS, answer, token

HEAD = Head("cmpl-1", 1_700_000_000, "tiny:1m")


def body(prompt: object = "Once", **fields: Any) -> CompletionBody:
    return CompletionBody.parse({"model": "tiny:1m", "prompt": prompt, **fields})


def whole(events: list[tuple[int, Event]], asked: CompletionBody) -> dict[str, Any]:
    reply = CompletionReply(HEAD, asked)
    for number, event in events:
        reply.add(number, event)
    decoded: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(reply.body()))
    return decoded


def streamed(events: list[tuple[int, Event]], asked: CompletionBody) -> list[dict[str, Any]]:
    stream = CompletionStream(HEAD, asked)
    sent = b"".join(stream.event(number, event) for number, event in events) + stream.end()
    *data, done = sent.removesuffix(b"\n\n").split(b"\n\n")
    assert done == b"data: [DONE]"
    return [msgspec.json.decode(item.removeprefix(b"data: ")) for item in data]


@pytest.mark.parametrize(
    ("prompt", "wanted"),
    [
        ("Once", ["Once"]),
        ("", [""]),
        (["a", "b"], ["a", "b"]),
        ([1, 2, 3], [(1, 2, 3)]),
        ([[1, 2], [3]], [(1, 2), (3,)]),
        (["a", [0]], ["a", (0,)]),
    ],
)
def test_to_requests_every_shape_of_prompt(prompt: object, wanted: list[object]) -> None:
    assert [request.prompt for request in to_requests(body(prompt), "req_1")] == wanted


def test_to_requests_several_prompts_have_ids_of_their_own() -> None:
    assert [request.id for request in to_requests(body(["a", "b"]), "req_1")] == ["req_1-0", "req_1-1"]


def test_to_requests_every_field_reaches_the_request() -> None:
    asked = body(max_tokens=3, echo=True, n=2, seed=1, logit_bias={"5": 2}, stop=["a", "b"])
    assert to_requests(asked, "req_1") == [
        GenerateRequest(
            id="req_1",
            model="tiny:1m",
            prompt="Once",
            options=Options(max_tokens=3, seed=1, stop=("a", "b")),
            logit_bias={5: 2.0},
            n=2,
            echo=True,
        )
    ]
    assert to_requests(body(logprobs=2), "req_1")[0].logprobs == 2
    assert to_requests(body(suffix="end", max_tokens=0), "req_1")[0].suffix == "end"
    assert to_requests(body(suffix=""), "req_1")[0].suffix is None


def test_to_requests_best_of_makes_more_answers_and_weighs_them() -> None:
    (request,) = to_requests(body(best_of=4, n=2), "req_1")
    assert (request.n, request.logprobs) == (4, 0)
    (request,) = to_requests(body(best_of=2, n=2), "req_1")
    assert (request.n, request.logprobs) == (2, None)


def test_reply_one_prompt_golden() -> None:
    assert whole([(0, event) for event in answer(" upon", " a")], body()) == {
        "id": "cmpl-1",
        "object": "text_completion",
        "created": 1_700_000_000,
        "model": "tiny:1m",
        "system_fingerprint": FINGERPRINT,
        "choices": [{"index": 0, "text": " upon a", "logprobs": None, "finish_reason": "stop"}],
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
        "timings": llama_timings(Usage(prompt=5, completion=2, cached=2), TIMINGS),
    }


def several() -> list[tuple[int, Event]]:
    """Two prompts, two answers each, all mixed up."""
    slow = Timings(queue_ms=9.0, prefill_ms=2.0, decode_ms=3.0, ttft_ms=11.0, itl_ms=1.0)
    return [
        (1, Started(3, 1)),
        (0, Started(2, 1)),
        (1, Text(1, "1.1")),
        (0, Text(1, "0.1")),
        (1, Text(0, "1.0")),
        (1, Stopped(0, "stop")),
        (0, Text(0, "0.0")),
        (1, Stopped(1, "length")),
        (1, Finished(Usage(prompt=3, completion=2, cached=1), slow)),
        (0, Stopped(0, "stop")),
        (0, Stopped(1, "stop")),
        (0, Finished(Usage(prompt=2, completion=2), TIMINGS)),
    ]


def test_reply_several_prompts_choices_are_numbered_prompt_by_prompt() -> None:
    reply = whole(several(), body(["a", "b"], n=2))
    assert [(c["index"], c["text"], c["finish_reason"]) for c in reply["choices"]] == [
        (0, "0.0", "stop"),
        (1, "0.1", "stop"),
        (2, "1.0", "stop"),
        (3, "1.1", "length"),
    ]
    assert reply["usage"] == {
        "prompt_tokens": 5,
        "completion_tokens": 4,
        "total_tokens": 9,
        "prompt_tokens_details": {"cached_tokens": 1},
        "completion_tokens_details": {
            "reasoning_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
    longest = msgspec.structs.replace(TIMINGS, queue_ms=9.0)
    assert reply["timings"] == llama_timings(Usage(prompt=5, completion=4, cached=1), longest)


def tries() -> list[tuple[int, Event]]:
    """Four answers: of means -3, -1, none, -0.5."""
    events: list[Event] = [Started(2, 1)]
    for index, numbers in enumerate([(-1.0, -5.0), (-1.0,), (), (-0.5, -0.5, -0.5)]):
        events += [Text(index, f"{index}", (token(f"{index}", number),)) for number in numbers]
        events.append(Stopped(index, "stop"))
    return [(0, event) for event in [*events, Finished(Usage(prompt=2, completion=6), TIMINGS)]]


@pytest.mark.parametrize(("n", "wanted"), [(1, ["333"]), (3, ["333", "1", "00"])])
def test_reply_best_of_shows_the_answers_of_the_highest_mean_first(n: int, wanted: list[str]) -> None:
    reply = whole(tries(), body(best_of=4, n=n))
    assert [(c["index"], c["text"], c["logprobs"]) for c in reply["choices"]] == [
        (index, text, None) for index, text in enumerate(wanted)
    ]
    assert reply["usage"]["completion_tokens"] == 6


def test_reply_best_of_with_logprobs_shows_those_of_the_answer_shown() -> None:
    (choice,) = whole(tries(), body(best_of=4, logprobs=0))["choices"]
    assert choice["logprobs"]["token_logprobs"] == [-0.5] * 3


def scored() -> list[tuple[int, Event]]:
    """`Once up` is echoed with its scores, in two steps; two answers of one token each."""
    tops = tuple(TopLogprob(1, text, p) for text, p in ((b" more", -0.25), (b" up", -1.0)))
    events: list[Event] = [
        Started(3, 1),
        Text(0, "Once upé"),
        Text(1, "Once upé"),
        PromptLogprobs((PromptToken(5, b"Once", None), PromptToken(6, b" up", -1.0, tops))),
        PromptLogprobs((PromptToken(7, "é".encode(), -2.0, tops),)),
        Text(1, " b", (token(" b", -0.5),)),
        Text(0, " a", (token(" a", -0.75),)),
        Stopped(0, "length"),
        Stopped(1, "length"),
        Finished(Usage(prompt=3, completion=2), TIMINGS),
    ]
    return [(0, event) for event in events]


def test_echo_with_logprobs_golden() -> None:
    choice = whole(scored(), body("Once upé", echo=True, logprobs=2, n=2))["choices"][0]
    assert choice == {
        "index": 0,
        "text": "Once upé a",
        "logprobs": {
            "tokens": ["Once", " up", "é", " a"],
            "token_logprobs": [None, -1.0, -2.0, -0.75],
            "top_logprobs": [
                None,
                {" more": -0.25, " up": -1.0},
                {" more": -0.25, " up": -1.0, "é": -2.0},
                None,
            ],
            "text_offset": [0, 4, 7, 8],
        },
        "finish_reason": "length",
    }


def test_echo_with_logprobs_stream_says_what_the_reply_says() -> None:
    asked = body("Once upé", echo=True, logprobs=2, n=2, stream=True)
    joined: list[dict[str, Any]] = [{"text": ""} for _ in range(2)]
    for chunk in streamed(scored(), asked):
        (choice,) = chunk["choices"]
        into = joined[choice["index"]]
        into["text"] += choice["text"]
        for name, values in (choice["logprobs"] or {}).items():
            into.setdefault(name, []).extend(values)
    for choice, got in zip(whole(scored(), asked)["choices"], joined, strict=True):
        assert got == {"text": choice["text"], **choice["logprobs"]}


def test_stream_several_prompts_one_choice_a_chunk() -> None:
    *chunks, last = streamed(
        several(), body(["a", "b"], n=2, stream=True, stream_options={"include_usage": True})
    )
    assert all(len(chunk["choices"]) == 1 for chunk in chunks)
    texts = ["", "", "", ""]
    reasons: list[list[str]] = [[], [], [], []]
    for chunk in chunks:
        choice = chunk["choices"][0]
        texts[choice["index"]] += choice["text"]
        reasons[choice["index"]] += [choice["finish_reason"]] if choice["finish_reason"] else []
    assert texts == ["0.0", "0.1", "1.0", "1.1"]
    assert reasons == [["stop"], ["stop"], ["stop"], ["length"]]
    assert last["choices"] == []
    assert last["usage"]["total_tokens"] == 9


def test_stream_logprobs_go_on_where_the_last_chunk_ended() -> None:
    events: list[tuple[int, Event]] = [
        (0, event)
        for event in (
            Started(1, 1),
            Text(0, "aé", (token("a", -0.1, ("a", -0.1), ("b", -3.0)), token("é", -0.2))),
            Text(0, "c", (token("c", -0.3),)),
            Stopped(0, "stop"),
            Finished(Usage(prompt=1, completion=3), TIMINGS),
        )
    ]
    asked = body(logprobs=2, stream=True)
    chunks = [chunk["choices"][0]["logprobs"] for chunk in streamed(events, asked)]
    assert chunks[0] == {
        "tokens": ["a", "é"],
        "token_logprobs": [-0.1, -0.2],
        "top_logprobs": [{"a": -0.1, "b": -3.0}, None],
        "text_offset": [0, 1],
    }
    assert chunks[1]["text_offset"] == [2]
    joined = {name: chunks[0][name] + chunks[1][name] for name in chunks[0]}
    assert whole(events, asked)["choices"][0]["logprobs"] == joined


def test_stream_progress_where_wanted() -> None:
    events: list[tuple[int, Event]] = [(0, event) for event in answer("Hello")]
    chunks = streamed(events, body(stream=True, return_progress=True))
    (progress,) = [chunk["prompt_progress"] for chunk in chunks if "prompt_progress" in chunk]
    assert progress == {"total": 5, "cache": 2, "processed": 5, "time_ms": 0.0}
    assert to_requests(body(stream=True, return_progress=True), "r")[0].progress
    assert not any("prompt_progress" in chunk for chunk in streamed(events, body(stream=True)))
