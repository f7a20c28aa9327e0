"""The few tokens that a sampler chain can choose among, found before it copies and sorts the vocabulary.

In: a row of logits, and how many of the likeliest may count. Out: where those are, and some others.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_COLUMNS = 512
_ROWS = 4  # with fewer a shorter list is no gain


def shortlist(logits: npt.NDArray[np.float32], count: int) -> npt.NDArray[np.intp] | None:
    """Places of the `count` highest logits and perhaps of more, in order; None where it is no gain to know.

    The logits are laid into columns. Each column's highest is one of them, so at least `count` of them reach
    the `count`-th of these: whatever is lower is not among the highest.
    """
    rows = len(logits) // _COLUMNS
    if rows < _ROWS or count > _COLUMNS // 4:
        return None
    if count == 1:
        return np.array([logits.argmax()])
    columns = logits[: rows * _COLUMNS].reshape(rows, _COLUMNS).max(axis=0)
    least = np.partition(columns, _COLUMNS - count)[_COLUMNS - count]
    return np.flatnonzero(logits >= least)
