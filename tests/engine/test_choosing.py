"""Choosing with a real sampler chain on logits written by hand."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from llmrun.engine.choosing import Chooser
from llmrun.engine.finite import NotFinite, check_finite
from llmrun.llama import Context, Model, SamplerChain
from llmrun.types import SamplingParams


class Rows:
    """A context that has computed a row, in which a token is the likeliest."""

    def __init__(self, size: int, token: int) -> None:
        self._logits = np.zeros(size, np.float32)
        self._logits[token] = 5.0

    def logits(self, _row: int) -> np.ndarray:
        return self._logits


class Replacing:
    """A guide that lets no 65 stand: 66 comes in its place, once."""

    thought, quiet, ended = 0, False, False

    def __init__(self) -> None:
        self._queue: list[int] = []
        self._replaced = False

    def forced(self) -> list[int]:
        return self._queue

    def allowed(self) -> None:
        return None

    def replaces(self, token: int) -> bool:
        if token == 65 and not self._replaced:
            self._replaced, self._queue = True, [66]
            return True
        return False

    def accept(self, _token: int) -> None:
        self._queue = []


def test_chooser_token_that_was_replaced_is_not_penalised(model: Model) -> None:
    """Only what is said is: 66, and not 65, which the model would say again and again."""
    params = SamplingParams(temperature=0, presence_penalty=10.0, repeat_last_n=8)
    chain = SamplerChain(model.vocab, params, seed=1, ctx=64)
    chooser = Chooser(cast("Context", Rows(model.vocab.size, 65)), chain, Replacing())
    said = [next(chooser.tokens(0, (), by_row=True)).token for _ in range(3)]
    chooser.close()
    assert said[:2] == [66, 65]
    assert said[2] not in (65, 66)


@pytest.mark.parametrize("size", [300, 4096])
@pytest.mark.parametrize("params", [{}, {"temperature": 0}, {"top_k": 0, "temperature": 1.0}])
@pytest.mark.parametrize("fault", [np.nan, np.inf])
def test_chooser_logits_that_are_no_numbers_are_refused(
    model: Model, params: dict[str, float], size: int, fault: float
) -> None:
    """llama.cpp would take token 0, or end the process."""
    rows = Rows(size, 65)
    rows.logits(0)[7] = fault
    chain = SamplerChain(model.vocab, SamplingParams(**params), seed=1, ctx=64)  # type: ignore[arg-type]
    chooser = Chooser(cast("Context", rows), chain, None)
    with pytest.raises(NotFinite, match="no number"):
        next(chooser.tokens(0, (), by_row=False))
    chooser.close()


def test_check_finite_of_logits_with_minus_infinity_in_them_is_silent() -> None:
    check_finite(np.array([-np.inf, 0.0], np.float32))
    with pytest.raises(NotFinite):
        check_finite(np.array([-np.inf, -np.inf], np.float32))
