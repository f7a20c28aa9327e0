"""Answers that go on beyond their window: each token is what a fresh prompt of what is left would bring."""

from __future__ import annotations

import random

import pytest

from llmrun.engine.request import Shift
from llmrun.llama import Model
from llmrun.types import Text
from tests.support.models import Running, running

PROMPT = [random.Random(5).randrange(10, 260) for _ in range(24)]
WINDOW, KEEP, TOKENS = 60, 7, 130
TIE = 0.05  # nats: a random model's candidates are close, and sums in another order turn them


def tokens_of(work: Running, request_id: str) -> list[int]:
    return [id for event in work.events[request_id] if isinstance(event, Text) for id in event.tokens]


def gap(work: Running, prompt: list[int], token: int) -> float:
    """By how much the likeliest token behind a fresh prompt is likelier than `token`."""
    request_id = work.submit(prompt, max_tokens=1, logprobs=20)
    work.wait()
    (said,) = (event for event in work.events[request_id] if isinstance(event, Text) and event.logprobs)
    top = {one.id: one.logprob for one in said.logprobs[0].top}
    return max(top.values()) - top.get(token, -99.0)


@pytest.mark.parametrize("neighbours", [0, 3])
def test_shifted_answer_says_what_fresh_prompts_would(model: Model, neighbours: int) -> None:
    with running(model) as work:
        others = [
            work.submit(PROMPT[:length], max_tokens=90, shift=Shift(50, 3))
            for length in range(5, 5 + neighbours)
        ]
        shifted = work.submit(PROMPT, max_tokens=TOKENS, tokens=True, shift=Shift(WINDOW, KEEP))
        work.wait(1 + len(others))
    said = tokens_of(work, shifted)
    assert len(said) == TOKENS
    seen = list(PROMPT)
    with running(model) as work:
        for token in said:
            assert gap(work, seen, token) < TIE
            seen.append(token)
            if len(seen) == WINDOW:
                seen = seen[:KEEP] + seen[KEEP + (WINDOW - KEEP + 1) // 2 :]


def test_answer_without_shift_ends_where_the_context_is_full(model: Model) -> None:
    with running(model, ctx=256) as work:
        request_id = work.submit(PROMPT, max_tokens=1000)
        work.wait()
        assert (work.stopped(request_id).reason, work.stopped(request_id).limit) == ("length", "context")
        assert work.finished(request_id).usage.completion == 256 - len(PROMPT)
