"""Steering in the engine, on a tiny random model: what is forced comes, and counts as it should."""

from __future__ import annotations

import json
import re

import pytest

from llmrun.chat.encoding import continued
from llmrun.chat.output_grammar import grammar_of
from llmrun.engine import CallPart, Grammars, ReasoningPart, Steering, Tokens
from llmrun.llama import Model
from llmrun.types import SamplingParams, Text
from tests.support.events import joined_text
from tests.support.formats import schema_format
from tests.support.models import Running, running
from tests.support.tiny import CONTROL, FIRST_BYTE

PROMPT = [30, 31, 32]
CLOSE = b"</think>"
START = CONTROL["<|im_start|>"]


@pytest.fixture(scope="module")
def work(model: Model):  # type: ignore[no-untyped-def]
    with running(model) as engine:
        yield engine


@pytest.fixture(scope="module")
def tokens(model: Model) -> Tokens:
    vocab = model.vocab
    return Tokens(
        piece=lambda token: {START: b"<|im_start|>"}.get(token) or vocab.piece(token),
        encode=lambda text: continued(text.decode(), vocab, special=True),
        ends=vocab.is_eog,
    )


def _reasoning(budget: int) -> ReasoningPart:
    return ReasoningPart(open=b"<think>", close=CLOSE, begun=True, budget=budget, separator=b"\n\n")


@pytest.mark.parametrize("logprobs", [None, 1])
def test_budget_of_reasoning_then_an_answer_by_its_grammar(
    work: Running, tokens: Tokens, grammars: Grammars, logprobs: int | None
) -> None:
    schema = {"enum": ["yes", "no"]}
    constraints = tuple(
        Steering(tokens, reasoning=_reasoning(9), answer=grammar)
        for grammar in grammars.start(grammar_of(schema_format(schema)), 2)
    )
    request = work.submit(PROMPT, n=2, max_tokens=200, constraints=constraints, logprobs=logprobs)
    work.wait()
    for index in range(2):
        thought, _, answer = joined_text(work.events[request], index).partition("</think>\n\n")
        assert json.loads(answer) in schema["enum"]
        assert thought
        listed = [
            entry
            for event in work.events[request]
            if isinstance(event, Text) and event.index == index
            for entry in event.logprobs
        ]
        assert not listed if logprobs is None else b"".join(e.raw for e in listed).endswith(answer.encode())
    usage = work.finished(request).usage
    assert usage.reasoning == 2 * (9 + len(CLOSE))
    assert usage.reasoning < usage.completion


def test_call_begins_its_grammar_where_the_model_writes_the_marker(
    work: Running, tokens: Tokens, grammars: Grammars
) -> None:
    (grammar,) = grammars.start(grammar_of(schema_format({"enum": ["a", "b"]})), 1)
    params = SamplingParams(temperature=1.0, logit_bias={START: 6.0}, repeat_penalty=1.0)
    steering = Steering(tokens, calls=(CallPart(open=b"<|im_start|>", grammar=grammar),))
    request = work.submit(
        PROMPT, params=params, max_tokens=120, constraints=(steering,), shown={START: b"<|im_start|>"}
    )
    work.wait()
    said = joined_text(work.events[request])
    calls = said.split("<|im_start|>")[1:]
    assert len(calls) > 1
    assert all(re.match(r'"(a|b)"', call) for call in calls[:-1])


def test_control_token_is_text_only_where_it_is_shown(work: Running) -> None:
    params = SamplingParams(temperature=0, logit_bias={START: 1000.0})
    hidden = work.submit(PROMPT, params=params, max_tokens=3)
    shown = work.submit(PROMPT, params=params, max_tokens=3, shown={START: b"<|im_start|>"})
    work.wait(2)
    assert joined_text(work.events[hidden]) == ""
    assert joined_text(work.events[shown]) == "<|im_start|>" * 3


def test_end_token_that_is_shown_is_said_and_ends_the_answer(work: Running) -> None:
    end = CONTROL["<|im_end|>"]
    params = SamplingParams(temperature=0, logit_bias={end: 1000.0})
    request = work.submit(PROMPT, params=params, max_tokens=9, shown={end: b"<|im_end|>"})
    work.wait()
    assert joined_text(work.events[request]) == "<|im_end|>"
    assert work.stopped(request).reason == "stop"


def test_stop_string_in_the_reasoning_does_not_end_the_answer(work: Running, tokens: Tokens) -> None:
    bias = {FIRST_BYTE + ord("x"): 1000.0}
    params = SamplingParams(temperature=0, logit_bias=bias)
    steering = Steering(tokens, reasoning=_reasoning(5))
    request = work.submit(PROMPT, params=params, max_tokens=60, stop=("xxx",), constraints=(steering,))
    work.wait()
    assert joined_text(work.events[request]) == "xxxxx</think>\n\n"
    assert work.stopped(request).stop_sequence == "xxx"
