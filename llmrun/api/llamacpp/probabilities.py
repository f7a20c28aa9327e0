"""`completion_probabilities`: each token of an answer, and the likeliest in its place."""

from __future__ import annotations

from collections.abc import Iterable

from llmrun.api.oneline import Json
from llmrun.types import TokenLogprob, TopLogprob

_LEAST = -3.4028234663852886e38  # what llama-server writes for a token that is impossible


def probabilities(tokens: Iterable[TokenLogprob]) -> list[Json]:
    """One record a token. One that holds part of a character has that in its bytes alone, not in its text."""
    return [{**_record(token), "top_logprobs": [_record(top) for top in token.top]} for token in tokens]


def _record(token: TokenLogprob | TopLogprob) -> Json:
    return {
        "id": token.id,
        "token": token.raw.decode("utf-8", "ignore"),
        "bytes": list(token.raw),
        "logprob": max(token.logprob, _LEAST),
    }
