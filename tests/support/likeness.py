"""Whether the engine chose the same tokens, up to where two were all but alike.

Kernels round differently for batches of different shapes, and what comes together by chance shapes a batch.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from llmrun.types import Text, TokenLogprob
from tests.support.models import Running

NEAR = 0.01
"""Of two tokens of a tiny model whose log probabilities are nearer than this, either may be chosen, and what
follows tells nothing: a batch's shape moves them by 0.002 at most."""

Chosen = list[TokenLogprob]


def chosen(work: Running, request: str) -> Chosen:
    """The tokens of an answer that was asked for with log probabilities."""
    return [token for event in work.events[request] if isinstance(event, Text) for token in event.logprobs]


def say(work: Running, *prompts: list[int], together: bool = False, **wanted: Any) -> list[Chosen]:
    """The tokens that are chosen after each prompt, one after the other or all at once."""
    requests = []
    for prompt in prompts:
        requests.append(work.submit(prompt, **{"logprobs": 3, **wanted}))
        if not together:
            work.wait()
    if together:
        work.wait(len(prompts))
    return [chosen(work, request) for request in requests]


def same(some: list[Chosen], others: list[Chosen]) -> bool:
    """Whether the choices are the same and equally likely, up to where two tokens were all but alike."""
    return all(_same(a, b) for a, b in zip(some, others, strict=True))


def _same(some: Chosen, others: Chosen) -> bool:
    for one, other in zip_longest(some, others):
        if one is None or other is None:  # a token that ended it is not among them
            return _near_tie(one or other)
        if abs(one.logprob - other.logprob) > NEAR:
            return False
        if one.id != other.id:
            return _near_tie(one, other.id)
    return True


def _near_tie(one: TokenLogprob, other: int | None = None) -> bool:
    """Whether another token, `other` where it is known, was all but as likely."""
    return any(
        abs(top.logprob - one.logprob) < NEAR and top.id != one.id and other in (None, top.id)
        for top in one.top
    )
