"""Whether a model still computes with numbers: weights, a scale or a cache that overflow end in NaN."""

from __future__ import annotations

from math import isfinite

import numpy as np
import numpy.typing as npt

from llmrun.errors import INTERNAL, LlmrunError


class NotFinite(LlmrunError):
    """What was computed for a sequence is no number, and its KV harms whoever shares the cache: attention
    multiplies the cells that a row does not see by 0, and 0 times NaN is NaN."""

    def __init__(self) -> None:
        super().__init__(
            INTERNAL,
            "the model computed what is no number (NaN or infinite), so there is no answer",
            hint="lower its adapters' scales, set LLMRUN_KV_TYPE=bf16, or check its files: llmrun verify",
        )


def check_finite(logits: npt.NDArray[np.float32]) -> None:
    """NotFinite where a row of logits [vocab] has NaN or infinity in it, or only minus infinity."""
    if not isfinite(logits.max()):  # which is NaN where any is
        raise NotFinite
