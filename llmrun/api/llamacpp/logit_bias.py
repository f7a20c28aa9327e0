"""`logit_bias` in llama-server's forms: `[[token, bias], …]` or `{token: bias}`.

A token is an id, or text whose every token is meant; `false` for a bias rules the token out.
"""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import PlainValidator, WithJsonSchema

from llmrun.api.bounds import INT32
from llmrun.api.schema import wrong

MAX_TEXTS = 64  # each is looked up in the model's vocabulary

Bias = tuple[int | str, float]


def _bias(value: object, where: str) -> float:
    if value is False:
        return -math.inf
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong("should be a number, or false", where)
    return float(value)


def _token(value: object, where: str) -> int | str:
    if isinstance(value, str) and value:
        return int(value) if value.isascii() and value.isdecimal() and int(value) <= INT32 else value
    if type(value) is int and 0 <= value <= INT32:
        return value
    raise wrong("should be a token id from 0, or text", where)


def biases_of(value: object) -> tuple[Bias, ...]:
    """The pairs in `value`, in order; ids written in digits are ids."""
    if isinstance(value, dict):
        pairs = [(_token(key, key[:40]), _bias(bias, key[:40])) for key, bias in value.items()]
    elif isinstance(value, list):
        pairs = [_pair(pair, str(number)) for number, pair in enumerate(value)]
    else:
        raise wrong("should be a list of pairs, or an object")
    if sum(isinstance(token, str) for token, _ in pairs) > MAX_TEXTS:
        raise wrong(f"should name at most {MAX_TEXTS} texts")
    return tuple(pairs)


def _pair(value: object, where: str) -> Bias:
    if not isinstance(value, list) or len(value) != 2:
        raise wrong("should be a pair of a token and its bias", where)
    token, bias = value
    # In a list a number is an id and text is text, whatever it spells.
    if isinstance(token, str) and token:
        return token, _bias(bias, f"{where}.1")
    return _token(token, f"{where}.0"), _bias(bias, f"{where}.1")


LogitBias = Annotated[
    tuple[Bias, ...], PlainValidator(biases_of), WithJsonSchema({"type": ["array", "object"]})
]
