"""How the rows of a step, and the guesses behind them, stand in the batch."""

from __future__ import annotations

from collections.abc import Sequence as Several

import numpy as np

from llmrun.engine.rows import Row
from llmrun.llama import Batch


def fill(batch: Batch, rows: Several[Row]) -> list[int]:
    """Put the rows into the batch, and drafts behind those that are sampled from; the batch index of each
    row's last token."""
    batch.clear()
    last = []
    for sequence, length, output in rows:
        kv, draft = sequence.kv, sequence.draft
        assert kv is not None
        start = kv.length
        tokens = sequence.tokens[start : start + length]
        if draft:
            tokens = np.concatenate([tokens, np.array(draft, np.int32)])
        read = length if sequence.scoring else int(output)
        first = batch.add(tokens, start, kv.slot, len(draft) + read)
        last.append(first + max(0, read - 1))
    return last
