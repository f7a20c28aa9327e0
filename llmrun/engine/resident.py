"""Tokens whose keys and values lie in the KV cache, and how many of them a prompt has in common."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from llmrun.engine.cells import CellIds
from llmrun.engine.request import Adapters

Tokens = npt.NDArray[np.int32]


class Resident:
    """The KV of a run of tokens from position 0, held in one slot of the context.

    `tokens` may go on beyond `length`; only the first `length` are computed, each in its cell.
    A running sequence owns one; when it ends, the prefix cache takes it over. `adapters` are those that
    it was computed with.
    """

    def __init__(self, slot: int, tokens: Tokens, adapters: Adapters = ()) -> None:
        self.slot = slot
        self.tokens = tokens
        self.adapters = adapters
        self.length = 0
        self._search = -1  # for cells of its last tokens, where they were computed
        self._before = 0  # its length before that
        self._cells = np.empty(max(len(tokens), 64), np.int32)

    @property
    def cells(self) -> CellIds:
        """The cells of the computed tokens, in order."""
        return self._cells[: self.length]

    def shareable(self, length: int, sliding_window: int, search: int | None) -> bool:
        """Whether a sequence may go on from its first `length` tokens. `sliding_window`: as in `Model`. Once
        it had as many tokens as that, llama.cpp may reuse its older cells in windowed layers as soon as it
        looks for free ones again, for a step or to restore what was saved; then only the whole serves.
        `search`: the last time it did; None: what is taken of it is saved, and lacks those cells at once."""
        had = self._before if search == self._search else self.length
        return length >= had or not sliding_window or had < sliding_window

    def compute(self, cells: CellIds, search: int) -> None:
        """The next `len(cells)` tokens were computed, in these cells, which that search found."""
        self._before, self._search = self.length, search
        self.extend(cells)

    def extend(self, cells: CellIds) -> None:
        """The next `len(cells)` tokens are there, in these cells."""
        end = self.length + len(cells)
        if end > len(self._cells):
            self._cells = np.concatenate([self._cells, np.empty(max(len(self._cells), len(cells)), np.int32)])
        self._cells[self.length : end] = cells
        self.length = end


def under(adapters: Adapters, tokens: Tokens) -> Tokens:
    """The tokens behind the adapters' strengths, bit for bit and one word each: what a prefix is found by.

    KV depends on the adapters; all runs of one model have as many of them, so that those that differ in
    strength have nothing in common.
    """
    if not adapters:
        return tokens
    return np.concatenate([np.array(adapters, np.float32).view(np.int32), tokens])


def common_prefix(a: Tokens, b: Tokens) -> int:
    """How many tokens `a` and `b` begin with alike."""
    n = min(len(a), len(b))
    differs = a[:n] != b[:n]
    first = int(differs.argmax()) if n else 0
    return first if n and differs[first] else n
