"""The engine's events through the parsers: what goes up, and what log probabilities come with it."""

from __future__ import annotations

import pytest

from llmrun.chat.syntax import FALLBACK, Block, OutputParser, Piece, Syntax
from llmrun.runner.answers import Answers
from llmrun.types import (
    CallArguments,
    CallStarted,
    Event,
    Failed,
    Finished,
    FinishReason,
    Reasoning,
    Started,
    Stopped,
    Text,
    Timings,
    TokenLogprob,
    Usage,
)

THINKS = Syntax(reasoning=Block("<think>\n", "\n</think>\n\n"), calls=FALLBACK.calls)
DONE = Finished(
    Usage(prompt=1, completion=1),
    Timings(queue_ms=0, prefill_ms=0, decode_ms=0, ttft_ms=0, itl_ms=0),
)
CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'


def answered(
    text: str, *, size: int = 1, reason: FinishReason = "stop", parallel: bool = True, n: int = 1
) -> list[Event]:
    """What goes up when the engine says `text` in pieces of `size`, to every one of `n` answers."""
    answers = Answers()
    answers.parse("r", lambda: OutputParser(THINKS), n, parallel=parallel)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    events: list[Event] = [Started(1, 0)]
    for piece in pieces:
        logprobs = (TokenLogprob(len(piece), piece.encode(), -1.0),)
        events += [Text(index, piece, logprobs) for index in range(n)]
    events += [*(Stopped(index, reason) for index in range(n)), DONE]
    read = [said for event in events for _, said in answers.read([("r", event)])]
    assert not answers._parsed
    return read


def joined(events: list[Event], kind: type[Event], index: int = 0) -> str:
    return "".join(e.text for e in events if isinstance(e, kind) and e.index == index)  # type: ignore[attr-defined]


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_answer_is_told_in_parts_and_no_marker_is_left(size: int) -> None:
    events = answered(f"<think>\nHm, a < b.\n</think>\n\nSure:\n{CALL}", size=size)
    assert joined(events, Reasoning) == "Hm, a < b."
    assert joined(events, Text).strip() == "Sure:"
    (started,) = [e for e in events if isinstance(e, CallStarted)]
    assert (started.call, started.name) == (0, "f")
    assert joined(events, CallArguments) == '{"a": 1}'
    assert [e.reason for e in events if isinstance(e, Stopped)] == ["tool_calls"]
    assert events[-1] == DONE


@pytest.mark.parametrize("size", [1, 2, 3])
def test_log_probabilities_are_those_of_the_text_beside_them(size: int) -> None:
    text = f"<think>\nHm, think\n</think>\n\nSure.\n\n\nI call 🦙 a < b\n{CALL}\n{CALL}\nDone < <"
    events = answered(text, size=size)
    for kind in (Text, Reasoning):
        listed = [e for event in events if isinstance(event, kind) for e in event.logprobs]
        raw, said = b"".join(entry.raw for entry in listed), joined(events, kind).encode()
        assert set(said.split(b"\n")) <= set(raw.replace(b"<\n", b"\n").split(b"\n"))
        assert len(raw) - len(said) in range(2 * size - 1)  # a token may be half a marker


@pytest.mark.parametrize("kept", [5, 20, 30, len(CALL)])
def test_tokens_of_a_call_have_no_log_probabilities(kept: int) -> None:
    events = answered(CALL[:kept], reason="length")
    assert not [e for e in events if isinstance(e, Text) and (e.text or e.logprobs)]


def test_call_cut_by_the_limit_is_reported_as_far_as_it_came() -> None:
    events = answered(CALL[: CALL.index(": 1}")], reason="length")
    assert [e.name for e in events if isinstance(e, CallStarted)] == ["f"]
    assert joined(events, CallArguments) == '{"a": 1}'[:4]
    assert [e.reason for e in events if isinstance(e, Stopped)] == ["length"]


def test_ids_of_calls_are_unique_over_answers() -> None:
    events = answered(f"{CALL}\n{CALL}", n=2)
    ids = [e.id for e in events if isinstance(e, CallStarted)]
    assert len(set(ids)) == len(ids) == 4


def test_answer_that_may_call_once_reports_one_call() -> None:
    events = answered(f"{CALL}\n{CALL}", parallel=False)
    assert len([e for e in events if isinstance(e, CallStarted)]) == 1
    assert joined(events, CallArguments) == '{"a": 1}'


def test_answer_without_a_call_ends_as_the_engine_says() -> None:
    assert answered("Hello")[-2:] == [Stopped(0, "stop"), DONE]


def test_events_of_plain_requests_are_the_engines_own() -> None:
    items: list[tuple[str, Event]] = [("r", Text(0, "<think>")), ("r", DONE)]
    assert Answers().read(items) is items


def test_parser_that_fails_ends_its_request_alone_and_once() -> None:
    class Broken(OutputParser):
        def feed(self, text: str) -> list[Piece]:
            raise RuntimeError(f"lost at {text}")

    answers = Answers()
    answers.parse("r", lambda: Broken(THINKS), 1, parallel=True)
    events = [("r", Text(0, "a")), ("s", Text(0, "b")), ("r", Stopped(0, "stop")), ("r", DONE)]
    (other, text), (name, failed) = answers.read(events)
    assert (other, text) == ("s", Text(0, "b"))
    assert name == "r"
    assert isinstance(failed, Failed)
    assert "lost" in failed.error.message


def test_echo_stands_in_front_of_each_answer() -> None:
    answers = Answers()
    answers.echo("r", "once", 2)
    read = answers.read([("r", Started(1, 0)), ("r", Text(0, "a"))])
    assert [event for _, event in read] == [Started(1, 0), Text(0, "once"), Text(1, "once"), Text(0, "a")]


@pytest.mark.parametrize("kept", range(len(CALL)))
def test_call_cut_anywhere_leaves_no_part_of_a_marker(kept: int) -> None:
    events = answered(f"Sure\n{CALL[:kept]}", reason="length", size=1000)
    assert joined(events, Text).strip() == "Sure"
