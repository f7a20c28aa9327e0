"""Tokens that may not come next for reasons of their own: strings that are banned, an answer still too short.

A banned string is kept out by forbidding, at every place, the tokens that would complete it. The model's
choice among the rest keeps its proportions; nothing that was said is taken back.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from llmrun.engine.guide import Guide
from llmrun.errors import INVALID_REQUEST, LlmrunError

Ids = npt.NDArray[np.intp]
_NONE: Ids = np.empty(0, np.intp)


class Spellings:
    """The bytes of every token of a vocabulary, in an order that finds those that begin alike."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        order = sorted(range(len(pieces)), key=pieces.__getitem__)
        self._ids = np.array(order, np.intp)
        self._pieces = [pieces[token] for token in order]
        self.pieces = pieces

    def beginning(self, start: bytes) -> Ids:
        """The tokens whose bytes begin with `start`."""
        low = bisect_left(self._pieces, start)
        high = low
        while high < len(self._pieces) and self._pieces[high].startswith(start):
            high += 1
        return self._ids[low:high]

    def containing(self, part: bytes) -> list[int]:
        """The tokens whose bytes hold all of `part`."""
        return [token for token, piece in enumerate(self.pieces) if part in piece]


class BannedStrings:
    """What completes each of some strings. Made once for a request, shared by its answers.

    `always`: tokens that hold a whole one; they may never come, and are not in what `after` gives.
    """

    def __init__(self, strings: Sequence[bytes], spellings: Spellings) -> None:
        self.always = sorted({token for string in strings for token in spellings.containing(string)})
        self.pieces = spellings.pieces
        self._enders: dict[bytes, Ids] = {}
        for string in strings:
            for at in range(1, len(string)):
                if len(found := spellings.beginning(string[at:])):
                    known = self._enders.get(string[:at], _NONE)
                    self._enders[string[:at]] = np.union1d(known, found)
        self.longest = max(map(len, self._enders), default=1)

    def after(self, tail: bytes) -> Ids:
        """The tokens that complete a banned string behind an answer that ends in `tail`."""
        ends = (tail[-length:] for length in range(1, min(len(tail), self.longest) + 1))
        found = [ids for end in ends if (ids := self._enders.get(end)) is not None]
        return np.unique(np.concatenate(found)) if found else _NONE


class Vetoes:
    """A guide around another, or around none, that takes tokens out of what is allowed.

    never     tokens that may not come at all
    least     tokens before an end token may come
    endings   the end tokens
    size      tokens of the vocabulary
    """

    def __init__(
        self,
        inner: Guide | None,
        banned: BannedStrings | None,
        *,
        never: Collection[int] = (),
        least: int,
        endings: Collection[int],
        size: int,
    ) -> None:
        self._inner = inner
        self._may_come = np.ones(size, bool)
        self._may_come[list(never)] = False
        self._never = frozenset(never)
        self._banned = banned
        self._left = least
        self._endings = np.array(sorted(endings), np.intp)
        self._tail = b""

    @property
    def thought(self) -> int:
        return self._inner.thought if self._inner else 0

    @property
    def quiet(self) -> bool:
        return self._inner.quiet if self._inner else False

    @property
    def ended(self) -> bool:
        """As the guide inside says."""
        return self._inner.ended if self._inner else False

    def forced(self) -> list[int]:
        """What the guide inside forces, as far as no string that is banned comes of it."""
        tokens = self._inner.forced() if self._inner else []
        tail = self._tail
        for at, token in enumerate(tokens):
            if token in self._never or (self._banned is not None and token in self._banned.after(tail)):
                if at == 0 and self._inner is not None and self._inner.allowed() is None:
                    raise _nothing_left()
                return tokens[:at]  # of none `allowed` decides: there may be another way to spell it
            if self._banned is not None:
                tail += self._banned.pieces[token]
        return tokens

    def allowed(self) -> Ids | None:
        """What the guide inside allows, without what may not come here."""
        ids = self._inner.allowed() if self._inner else None
        vetoed = self._banned.after(self._tail) if self._banned else _NONE
        if self._left > 0:
            vetoed = np.union1d(vetoed, self._endings)
        if ids is None:
            if not len(vetoed):
                return None  # a bias keeps away what may never come
            ids = np.arange(len(self._may_come), dtype=np.intp)
        may_come = self._may_come
        if len(vetoed):
            may_come = may_come.copy()
            may_come[vetoed] = False
        elif not self._never:
            return ids
        left = ids[may_come[ids]]
        if not len(left):
            raise _nothing_left()
        return left

    def replaces(self, token: int) -> bool:
        """As the guide inside says."""
        return self._inner.replaces(token) if self._inner else False

    def accept(self, token: int) -> None:
        """The answer goes on with this token."""
        if self._inner:
            self._inner.accept(token)
        self._left -= 1
        if self._banned is not None:
            self._tail = (self._tail + self._banned.pieces[token])[-self._banned.longest :]


def _nothing_left() -> LlmrunError:
    return LlmrunError(
        INVALID_REQUEST,
        "banned_strings, logit_bias or min_tokens leave no token that the output's grammar allows",
        hint="ban less, or loosen the format",
    )
