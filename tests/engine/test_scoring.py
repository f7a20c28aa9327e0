"""The scores of prompts on a tiny model, against logits that are computed one prefix at a time."""

from __future__ import annotations

import random

import numpy as np
import pytest

from llmrun.engine.scoring import rows_at_once
from llmrun.llama import Batch, DecodeStatus, Model
from llmrun.types import PromptLogprobs, PromptToken, Text
from tests.support.models import Running, running, tiny_context

PROMPT = [random.Random(5).randrange(10, 260) for _ in range(90)]


def expected(model: Model, prompt: list[int]) -> list[float]:
    """log softmax of each token after the first, each from a context of its own tokens alone."""
    context, batch = tiny_context(model), Batch(1)
    found = []
    try:
        for place, token in enumerate(prompt[:-1]):
            batch.clear()
            row = batch.add(np.array([token], np.int32), place, 0, 1)
            assert context.decode(batch) is DecodeStatus.OK
            logits = context.logits(row).astype(np.float64)
            norm = logits.max() + np.log(np.exp(logits - logits.max()).sum())
            found.append(float(logits[prompt[place + 1]] - norm))
    finally:
        context.close()
    return found


def scores(work: Running, request: str) -> list[PromptToken]:
    """All scores of the request; they come before any text."""
    events = work.events[request]
    texts = [place for place, event in enumerate(events) if isinstance(event, Text)]
    places = [place for place, event in enumerate(events) if isinstance(event, PromptLogprobs)]
    assert not texts or max(places) < min(texts)
    return [token for event in events if isinstance(event, PromptLogprobs) for token in event.tokens]


@pytest.mark.parametrize("batch", [16, 64])
def test_scores_of_a_prompt_are_those_of_its_prefixes(model: Model, batch: int) -> None:
    with running(model, batch=batch) as work:
        request = work.submit(PROMPT, logprobs=3, score_from=0, max_tokens=2)
        work.wait()
    found = scores(work, request)
    assert [token.id for token in found] == PROMPT
    assert found[0].logprob is None
    assert [token.logprob for token in found[1:]] == pytest.approx(expected(model, PROMPT), abs=0.02)
    for token in found[1:]:
        assert len(token.top) == 3
        assert token.top[0].logprob >= token.top[1].logprob >= token.top[2].logprob
        assert token.logprob is not None
        assert token.logprob <= token.top[0].logprob


def test_scores_do_not_depend_on_what_is_cached(model: Model) -> None:
    with running(model) as work:
        work.answer(PROMPT)
        request = work.submit(PROMPT, logprobs=0, score_from=0, max_tokens=1)
        work.wait()
        assert work.finished(request).usage.cached == 0
        assert len(scores(work, request)) == len(PROMPT)
        again = work.submit(PROMPT, max_tokens=1)
        work.wait()
        assert work.finished(again).usage.cached == len(PROMPT) - 1


def test_scores_from_behind_a_bos_leave_it_out(model: Model) -> None:
    with running(model) as work:
        request = work.submit(PROMPT[:5], logprobs=0, score_from=1, max_tokens=0)
        work.wait()
    found = scores(work, request)
    assert [token.id for token in found] == PROMPT[1:5]
    assert None not in [token.logprob for token in found]
    assert work.finished(request).usage.completion == 0


@pytest.mark.parametrize("score_from", [0, 1])
def test_scores_of_one_token(model: Model, score_from: int) -> None:
    with running(model) as work:
        request = work.submit(PROMPT[:1], logprobs=0, score_from=score_from, max_tokens=0)
        work.wait()
    assert [token.logprob for token in scores(work, request)] == [None] * (1 - score_from)


def test_scores_come_once_for_several_answers_and_before_their_texts(model: Model) -> None:
    with running(model, batch=16) as work:
        older = work.submit([*PROMPT[40:], *PROMPT[:40]], logprobs=0, score_from=0, max_tokens=4)
        request = work.submit(PROMPT, logprobs=0, score_from=0, max_tokens=4, n=3)
        work.wait(2)
    assert len(scores(work, older)) == len(scores(work, request)) == len(PROMPT)
    assert work.finished(request).usage.completion == 12


def test_cancelled_while_scored_leaves_nothing_behind(model: Model) -> None:
    with running(model, batch=16) as work:
        request = work.submit(PROMPT * 4, logprobs=0, score_from=0, n=2)
        work.engine.cancel(request)
        work.wait()
        assert work.answer(PROMPT[:10])
        assert work.engine.scheduler.idle


def test_rows_at_once_keep_the_logits_within_bounds() -> None:
    assert rows_at_once(49_152) == 170
    assert rows_at_once(262_144) == 32
    assert rows_at_once(10**7) == 16
