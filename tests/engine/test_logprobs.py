from __future__ import annotations

import math

import numpy as np

from llmrun.engine.logprobs import token_logprob


def test_token_logprob_of_known_logits_is_log_softmax() -> None:
    probabilities = np.array([0.1, 0.6, 0.3], np.float32)
    found = token_logprob(np.log(probabilities) + 5, 2, 2, lambda i: bytes([65 + i]))
    assert (found.id, found.raw) == (2, b"C")
    assert math.isclose(math.exp(found.logprob), 0.3, rel_tol=1e-5)
    assert [alternative.id for alternative in found.top] == [1, 2]
    assert math.isclose(math.exp(found.top[0].logprob), 0.6, rel_tol=1e-5)


def test_token_logprob_more_alternatives_than_tokens_gives_all() -> None:
    found = token_logprob(np.zeros(3, np.float32), 0, 99, lambda _: b"")
    assert len(found.top) == 3


def test_token_logprob_of_huge_logits_stays_finite() -> None:
    found = token_logprob(np.array([1e4, 0.0], np.float32), 0, 1, lambda _: b"")
    assert found.logprob == 0.0
