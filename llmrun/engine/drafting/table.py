"""Where runs of tokens stand in a text, found by a hash. Knows neither what is copied nor who asks."""

from __future__ import annotations

from array import array

import numpy as np

from llmrun.engine.resident import Tokens

_FACTOR = 0x9E3779B97F4A7C15  # odd, of 64 bits: Knuth's multiplicative hashing
_WORD = (1 << 64) - 1


class Table:
    """Places by a hash of the `n` tokens before them; the newest wins. Places start at 1; 0: none.

    The hash is a polynomial of the tokens modulo 2^64, whose high bits are the index. Two runs of tokens may
    share one: who asks compares.
    """

    def __init__(self, n: int, bits: int) -> None:
        self.n = n
        self._shift = 64 - bits
        self._places = array("i", bytes(4 << bits))
        self.hash = 0
        """Of the newest `n` tokens."""
        self._leaving = pow(_FACTOR, n + 1, 1 << 64)

    def fill(self, tokens: Tokens, start: int = 0) -> None:
        """Note the places of a whole text, which begins behind `start` tokens of others."""
        n = self.n
        if len(tokens) < n:
            for token in tokens.tolist():
                self.hash = (self.hash + token) * _FACTOR & _WORD
            return
        wide = tokens.astype(np.uint64)
        hashes = np.zeros(len(tokens) - n + 1, np.uint64)
        for i in range(n):
            hashes = (hashes + wide[i : len(tokens) - n + 1 + i]) * np.uint64(_FACTOR)
        self.hash = int(hashes[-1])
        index = (hashes >> np.uint64(self._shift)).astype(np.intp)
        places = np.frombuffer(self._places, np.int32)
        np.maximum.at(places, index, np.arange(start + n, start + len(tokens) + 1, dtype=np.int32))

    def note(self, place: int, new: int, old: int) -> int:
        """A text got longer by token `new`, so that it ends at `place`; `old` is now n tokens before its end.
        Returns the place noted there before."""
        value = self.hash = ((self.hash + new) * _FACTOR - old * self._leaving) & _WORD
        index = value >> self._shift
        before = self._places[index]
        self._places[index] = place
        return before

    def find(self, value: int) -> int:
        """The place noted last under a hash, of this table or of another one for as many tokens."""
        return self._places[value >> self._shift]
