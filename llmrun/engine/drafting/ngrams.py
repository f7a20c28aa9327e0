"""Guesses that an answer goes on as it, or its prompt, went on before after the same tokens.

Also known as prompt lookup (https://github.com/apoorvumang/prompt-lookup-decoding). Each place in a text is
noted under a hash of the tokens before it, in two tables: under many tokens, and under few. The newest place
with the most tokens in common is followed for as long as it keeps being right, at no cost but a comparison.
A place that was followed for long and is lost is found again by a single token near it: texts are copied with
a word put in, left out or replaced.

Cost (scripts/bench/drafting.py --index, a busy machine): 1.2 µs a token said, 0.07 µs a token of the prompt.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from collections.abc import Sequence as Many

import numpy as np

from llmrun.engine.drafting.acceptance import Acceptance
from llmrun.engine.drafting.guess import NO_GUESS, Guess
from llmrun.engine.resident import Tokens
from llmrun.engine.sequence import Sequence

FEW, MANY = 3, 8
_COMPARED = 17  # tokens in common that are counted at most
_NEAR = 8  # tokens behind a lost place, and how many may come, within which it is found again
# Classes of guesses by the tokens in common before them, and how often each is usually right. Fewer than FEW
# are in common only where a place was found again.
_CLASS = [0] * FEW + [1] * 2 + [2] * 4 + [3] * 8 + [4]
_USUAL = (0.5, 0.3, 0.5, 0.7, 0.9)
_UNLIKELY = 0.02

_FACTOR = 0x9E3779B97F4A7C15  # odd, of 64 bits: Knuth's multiplicative hashing
_WORD = (1 << 64) - 1


class _Table:
    """Places by a hash of the `n` tokens before them; the newest wins. Places start at 1; 0: none.

    The hash is a polynomial of the tokens modulo 2^64, whose high bits are the index. Two runs of tokens may
    share one: who asks compares.
    """

    def __init__(self, n: int, bits: int) -> None:
        self.n = n
        self._shift = 64 - bits
        self._places = array("i", bytes(4 << bits))
        self._hash = 0
        self._leaving = pow(_FACTOR, n + 1, 1 << 64)

    def fill(self, tokens: Tokens) -> None:
        """Note the places of a whole text."""
        n = self.n
        if len(tokens) < n:
            for token in tokens.tolist():
                self._hash = (self._hash + token) * _FACTOR & _WORD
            return
        wide = tokens.astype(np.uint64)
        hashes = np.zeros(len(tokens) - n + 1, np.uint64)
        for i in range(n):
            hashes = (hashes + wide[i : len(tokens) - n + 1 + i]) * np.uint64(_FACTOR)
        self._hash = int(hashes[-1])
        index = (hashes >> np.uint64(self._shift)).astype(np.intp)
        places = np.frombuffer(self._places, np.int32)
        np.maximum.at(places, index, np.arange(n, len(tokens) + 1, dtype=np.int32))

    def note(self, place: int, new: int, old: int) -> int:
        """A text got longer by token `new`, so that it ends at `place`; `old` is now n tokens before its end.
        Returns the place noted there before."""
        value = self._hash = ((self._hash + new) * _FACTOR - old * self._leaving) & _WORD
        index = value >> self._shift
        before = self._places[index]
        self._places[index] = place
        return before


class Copying:
    """What one text copies from itself. `most`: tokens it will ever have, about."""

    def __init__(self, tokens: Tokens, most: int) -> None:
        bits = max(8, (2 * max(most, len(tokens))).bit_length())
        self._few, self._many = _Table(FEW, bits), _Table(MANY, bits)
        self._tokens = array("i", tokens.astype(np.int32).tobytes())
        self._few.fill(tokens)
        self._many.fill(tokens)
        self._place = 0  # of the token that is guessed to come next; 0: no guess
        self._common = 0  # tokens before the place that are the newest tokens too
        self._lost = self._lost_at = 0  # a place that was followed for long, and the text's length then
        self.acceptance = Acceptance(_USUAL)

    def __len__(self) -> int:
        return len(self._tokens)

    def extend(self, tokens: Iterable[int]) -> None:
        """The text goes on."""
        for token in tokens:
            self._push(token)

    def _push(self, token: int) -> None:
        tokens, place = self._tokens, self._place
        if place:
            right = tokens[place] == token
            self.acceptance.note(_CLASS[self._common], right)
            if right:
                self._place = place + 1
                self._common = min(self._common + 1, _COMPARED)
            else:
                self._place = 0
                if self._common >= MANY:
                    self._lost, self._lost_at = place, len(tokens)
        tokens.append(token)
        end = len(tokens)
        few = self._few.note(end, token, tokens[end - FEW - 1] if end > FEW else 0)
        many = self._many.note(end, token, tokens[end - MANY - 1] if end > MANY else 0)
        if not self._place:
            self._follow(many, MANY) or self._follow(few, FEW) or self._find_again(token)

    def _follow(self, place: int, least: int) -> bool:
        """Guess that what came at `place` comes now, if `least` tokens before it are the newest ones."""
        if not place:
            return False
        tokens, common = self._tokens, 0
        for i in range(1, min(_COMPARED, place) + 1):
            if tokens[place - i] != tokens[-i]:
                break
            common = i
        if common < least:
            return False
        self._place, self._common = place, common
        return True

    def _find_again(self, token: int) -> bool:
        """Guess that the text goes on behind `token`, its newest, where that stands near the lost place."""
        if not self._lost or len(self._tokens) - self._lost_at > _NEAR:
            return False
        near = self._tokens[self._lost : min(self._lost + _NEAR, self._lost_at)]
        if token not in near:
            return False
        self._place, self._common = self._lost + near.index(token) + 1, 1
        self._lost = 0
        return True

    def guess(self, most: int) -> Guess:
        """The tokens that came at the place that is followed. Where it is so near that they end, they are
        taken to repeat."""
        if not self._place or most < 1:
            return NO_GUESS
        rates, chances, chance = self.acceptance.rates, [], 1.0
        for common in range(self._common, self._common + most):
            chance *= rates[_CLASS[min(common, _COMPARED)]]
            if chance < _UNLIKELY:
                break
            chances.append(chance)
        tokens = self._tokens[self._place : self._place + len(chances)].tolist()
        while len(tokens) < len(chances):
            tokens += tokens[: len(chances) - len(tokens)]
        return Guess(tokens, chances)


class Ngrams:
    """A drafter that needs no model. `ctx`: tokens that a sequence may have."""

    def __init__(self, ctx: int) -> None:
        self._ctx = ctx
        self._copying: dict[Sequence, Copying] = {}

    def guesses(self, sequences: Many[Sequence], most: int, _seconds: float) -> list[Guess]:
        return [self._seen(sequence).guess(most) for sequence in sequences]

    def forget(self, sequence: Sequence) -> None:
        self._copying.pop(sequence, None)

    def _seen(self, sequence: Sequence) -> Copying:
        copying = self._copying.get(sequence)
        if copying is None:
            prompt = sequence.tokens[: sequence.prompt_length]
            limit = sequence.request.max_tokens
            most = self._ctx if limit is None else min(self._ctx, sequence.prompt_length + limit)
            copying = self._copying[sequence] = Copying(prompt, most)
        copying.extend(sequence.tokens[len(copying) :].tolist())
        return copying
