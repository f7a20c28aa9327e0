"""What one step computes of each sequence. Pure."""

from __future__ import annotations

from collections.abc import Sequence as Several
from typing import NamedTuple

from llmrun.engine.budget import BURST_S, scored_shares
from llmrun.engine.even_steps import Span
from llmrun.engine.sequence import Sequence


class Row(NamedTuple):
    """`length` pending tokens of a sequence, from its `computed` on. `output`: the last is sampled from."""

    sequence: Sequence
    length: int
    output: bool


def slot_of(row: Row) -> int:
    """Where the row's sequence has its cells."""
    assert row.sequence.kv is not None
    return row.sequence.kv.slot


class Prefill(NamedTuple):
    """The prompt tokens of a step, computed tokens before each on average, and whether any are scored."""

    tokens: int
    depth: float
    scored: bool


def prefill_of(rows: Several[Row]) -> Prefill:
    """What the rows compute of prompts, before they are computed."""
    prompts = [row for row in rows if not row.sequence.decoding]
    tokens = sum(row.length for row in prompts)
    pairs = sum(row.length * (row.sequence.computed + row.length / 2) for row in prompts)
    return Prefill(tokens, pairs / max(1, tokens), any(row.sequence.scoring for row in prompts))


def longest_prompt(running: Several[Sequence]) -> Span:
    """The one that has most to compute here of those that are being computed; an empty span where none is."""
    prompts = [s for s in running if not s.decoding]
    if not prompts:
        return Span(0, 0, 0)
    return max(map(_span, prompts), key=lambda span: span.end - span.start)


def is_burst(running: Several[Sequence], now: float) -> bool:
    """Whether what is being computed came together: every answer has begun within the last `BURST_S`, after
    all the prompts had come."""
    begun = [s.first_token or 0.0 for s in running if s.decoding]
    came = [s.request.arrived for s in running if not s.decoding]
    return bool(begun and came) and min(begun) >= max(*came, now - BURST_S)


def _span(sequence: Sequence) -> Span:
    # What was swapped out and could not be placed again is computed from its start.
    return Span(min(sequence.cached, sequence.computed), sequence.computed, sequence.length)


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
