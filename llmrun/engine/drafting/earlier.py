"""What earlier answers said, one behind the other: an answer may say again what another said.

In: whole texts. Out: places by the hash of the tokens before them. The newest texts are kept. Places count
from the first token ever kept, so that one stays right, or is known to be gone, when older texts are let go.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np

from llmrun.engine.drafting.table import Table
from llmrun.engine.resident import Tokens

_MOST = 1 << 16  # tokens kept
_LONGEST = 1 << 12  # of one text
_BETWEEN = -1  # stands between two texts; no token


class Earlier:
    """Texts of all sequences; `n` tokens before a place are hashed. Used by the engine's thread."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._gone = 0  # tokens that were let go
        self._tokens = array("i")
        self._table = Table(n, _MOST.bit_length())

    def add(self, text: Tokens) -> None:
        """Keep a text that is over, or the beginning of a long one."""
        if len(self._tokens) + _LONGEST >= _MOST:
            self._let_go()
        kept = np.append(text[:_LONGEST].astype(np.int32), np.int32(_BETWEEN))
        self._table.fill(kept[:-1], len(self._tokens))
        self._tokens.frombytes(kept.tobytes())

    def find(self, value: int) -> int:
        """The newest place behind tokens of that hash, as far as a hash tells; 0: none."""
        at = self._table.find(value)
        return at and self._gone + at

    def at(self, place: int) -> int | None:
        """The token at a place; None where a text ends, or it is gone."""
        return next(iter(self.after(place, 1)), None)

    def common(self, place: int, newest: Sequence[int], most: int) -> int:
        """How many tokens before a place are the newest ones, counted up to `most`."""
        at = place - self._gone
        for i in range(1, min(most, at, len(newest)) + 1):
            if self._tokens[at - i] != newest[-i]:
                return i - 1
        return max(0, min(most, at, len(newest)))

    def after(self, place: int, most: int) -> list[int]:
        """The tokens from a place on, to the end of its text."""
        at = place - self._gone
        if at < 0:
            return []
        tokens = self._tokens[at : at + most].tolist()
        return tokens[: tokens.index(_BETWEEN)] if _BETWEEN in tokens else tokens

    def _let_go(self) -> None:
        """Keep the newer half."""
        half = len(self._tokens) // 2
        self._gone += half
        self._tokens = self._tokens[half:]
        self._table = Table(self._n, _MOST.bit_length())
        self._table.fill(np.frombuffer(self._tokens, np.int32).copy())
