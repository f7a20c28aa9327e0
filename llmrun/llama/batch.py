"""The rows of one decode call, in memory that Python owns and llama.cpp reads."""

from __future__ import annotations

import ctypes

import numpy as np
import numpy.typing as npt

from llmrun.llama.library import lib

Tokens = npt.NDArray[np.int32]


class Batch:
    """Up to `capacity` rows, each one token of one sequence. Refilled for every step.

    Rows of one sequence are added in the order of their positions. Used by one thread.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._token = np.zeros(capacity, np.int32)
        self._pos = np.zeros(capacity, np.int32)
        self._seq = np.zeros(capacity, np.int32)
        self._one = np.ones(capacity, np.int32)
        self._output = np.zeros(capacity, np.int8)
        base = self._seq.ctypes.data
        int_p = ctypes.POINTER(ctypes.c_int32)
        self._seq_rows = (int_p * capacity)(*(ctypes.cast(base + 4 * i, int_p) for i in range(capacity)))
        self.native = lib.llama_batch(
            n_tokens=0,
            token=self._token.ctypes.data_as(int_p),
            embd=None,
            pos=self._pos.ctypes.data_as(int_p),
            n_seq_id=self._one.ctypes.data_as(int_p),
            seq_id=self._seq_rows,
            logits=self._output.ctypes.data_as(ctypes.POINTER(ctypes.c_int8)),
        )
        self.rows = 0

    def clear(self) -> None:
        self.rows = self.native.n_tokens = 0

    def add(self, tokens: Tokens, start: int, slot: int, outputs: int) -> int:
        """Append `tokens` of sequence `slot`, the first at position `start`.

        The logits of the last `outputs` rows will be readable. Returns the index of the first row after
        those without.
        """
        first, last = self.rows, self.rows + len(tokens)
        if last > self.capacity:
            raise ValueError(f"{last} rows in a batch of {self.capacity}")
        if last - first == 1:  # a decode row: item assignment beats slices
            self._token[first] = tokens[0]
            self._pos[first] = start
            self._seq[first] = slot
        else:
            self._token[first:last] = tokens
            self._pos[first:last] = np.arange(start, start + last - first, dtype=np.int32)
            self._seq[first:last] = slot
        self._output[first : last - outputs] = 0
        self._output[last - outputs : last] = 1
        self.rows = self.native.n_tokens = last
        return last - outputs
