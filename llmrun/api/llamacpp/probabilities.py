"""`completion_probabilities`: each token of an answer, and the likeliest in its place.

Before the samplers these are log probabilities, after them probabilities under other names, as llama-server
has it. `samplers` is our own: the candidates after each of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from llmrun.api.llamacpp.bodies import Completing
from llmrun.api.oneline import Json
from llmrun.types import SamplerStage, TokenLogprob, TopLogprob

_LEAST = -3.4028234663852886e38  # what llama-server writes for a token that is impossible


def probabilities(tokens: Iterable[TokenLogprob], body: Completing) -> list[Json]:
    """One record a token. One that holds part of a character has that in its bytes alone, not in its text."""
    return [_token(token, body) for token in tokens]


def _token(token: TokenLogprob, body: Completing) -> Json:
    record = _after(token) if body.post_sampling_probs else _before(token)
    if body.sampler_probs:
        record["samplers"] = [_stage(stage) for stage in token.stages]
    return record


def _before(token: TokenLogprob) -> Json:
    return {**_logprob(token), "top_logprobs": [_logprob(top) for top in token.top]}


def _after(token: TokenLogprob) -> Json:
    if not token.stages:  # nothing else was possible
        only = {**_spelt(token), "prob": 1.0}
        return {**only, "top_probs": [only]}
    last = token.stages[-1]
    return {**_spelt(token), "prob": math.exp(last.logprob), "top_probs": [_prob(top) for top in last.top]}


def _stage(stage: SamplerStage) -> Json:
    return {
        "name": stage.name,
        "left": stage.left,
        "prob": math.exp(stage.logprob),
        "top_probs": [_prob(top) for top in stage.top],
    }


def _logprob(token: TokenLogprob | TopLogprob) -> Json:
    return {**_spelt(token), "logprob": max(token.logprob, _LEAST)}


def _prob(token: TopLogprob) -> Json:
    return {**_spelt(token), "prob": math.exp(token.logprob)}


def _spelt(token: TokenLogprob | TopLogprob) -> Json:
    return {"id": token.id, "token": token.raw.decode("utf-8", "ignore"), "bytes": list(token.raw)}
