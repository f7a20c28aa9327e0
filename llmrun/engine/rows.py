"""What one step computes of each sequence. Pure."""

from __future__ import annotations

from collections.abc import Sequence as Several
from typing import NamedTuple

from llmrun.engine.budget import scored_shares
from llmrun.engine.sequence import Sequence


class Row(NamedTuple):
    """`length` pending tokens of a sequence, from its `computed` on. `output`: the last is sampled from."""

    sequence: Sequence
    length: int
    output: bool


def rows_of(running: Several[Sequence], budget: int, free: int, scored_rows: int) -> list[Row]:
    """Decode rows of `running` first, then the prompts' shares, in their order: at most `budget` tokens, if
    that leaves every decoding sequence its row, and of prompts that are scored at most `scored_rows`.
    `free` cells are enough for what is decoding."""
    decoding = [s for s in running if s.decoding]
    rows = []
    rest = min(max(0, budget - len(decoding)), free - len(decoding))
    for sequence in decoding:
        length = 1 + min(sequence.pending - 1, rest)
        rows.append(Row(sequence, length, length == sequence.pending))
        rest -= length - 1
    prefilling = [s for s in running if not s.decoding]
    given = scored_shares([(s.pending, s.scoring) for s in prefilling], rest, scored_rows)
    for sequence, length in zip(prefilling, given, strict=True):
        if length:
            rows.append(Row(sequence, length, length == sequence.pending))
    return rows
