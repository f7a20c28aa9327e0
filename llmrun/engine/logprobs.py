"""Log probabilities from a row of logits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from llmrun.types import SamplerStage, TokenLogprob, TopLogprob


def token_logprob(
    logits: npt.NDArray[np.float32],
    token: int,
    top: int,
    piece: Callable[[int], bytes],
    stages: tuple[SamplerStage, ...] = (),
) -> TokenLogprob:
    """log softmax(logits) of `token` and of the `top` likeliest tokens, likeliest first."""
    highest = float(logits.max())
    norm = highest + float(np.log(np.exp(logits - highest, dtype=np.float32).sum(dtype=np.float64)))
    alternatives = []
    if top := min(top, len(logits)):
        ids = np.argpartition(logits, -top)[-top:]
        ids = ids[np.argsort(-logits[ids], kind="stable")]
        alternatives = [TopLogprob(int(i), piece(int(i)), float(logits[i]) - norm) for i in ids]
    return TokenLogprob(token, piece(token), float(logits[token]) - norm, tuple(alternatives), stages)
