"""Guesses that an answer goes on as it, or its prompt, went on before after the same tokens.

Also known as prompt lookup (https://github.com/apoorvumang/prompt-lookup-decoding). Each place in a text is
noted under a hash of the tokens before it, in two tables: under many tokens, and under few. The newest place
with the most tokens in common is followed for as long as it keeps being right, at no cost but a comparison.
So is one in what earlier answers said (`earlier.py`), which many tokens lead to. A place that was followed
for long and is lost is found again by a single token near it: texts are copied with a word put in, left out
or replaced.

Cost (scripts/bench/drafting.py --index, a busy machine): 1.2 µs a token said, 0.07 µs a token of the prompt.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from collections.abc import Sequence as Many

import numpy as np

from llmrun.engine.drafting.acceptance import Acceptance
from llmrun.engine.drafting.earlier import Earlier
from llmrun.engine.drafting.guess import NO_GUESS, Guess
from llmrun.engine.drafting.table import Table
from llmrun.engine.resident import Tokens
from llmrun.engine.sequence import Sequence

FEW, MANY = 3, 8
_COMPARED = 17  # tokens in common that are counted at most
_NEAR = 8  # tokens behind a lost place, and how many may come, within which it is found again
# Classes of guesses by the tokens in common before them, and how often each is usually right. Fewer than FEW
# are in common only where a place was found again.
_CLASS = [0] * FEW + [1] * 2 + [2] * 4 + [3] * 8 + [4]
# The last two classes are those of places in earlier texts.
_USUAL = (0.5, 0.3, 0.5, 0.7, 0.9, 0.7, 0.9)
_ELSEWHERE = 5
_UNLIKELY = 0.02


class Copying:
    """What one text copies from itself, and from the `earlier` ones. `most`: tokens it will ever have, about.

    A place in each is followed. Where they differ, the guess is that of the place whose like were right more
    often, then of the one with more tokens in common.
    """

    def __init__(self, tokens: Tokens, most: int, earlier: Earlier) -> None:
        bits = max(8, (2 * max(most, len(tokens))).bit_length())
        self._few, self._many = Table(FEW, bits), Table(MANY, bits)
        self._tokens = array("i", tokens.astype(np.int32).tobytes())
        self._few.fill(tokens)
        self._many.fill(tokens)
        self._place = 0  # of the token that is guessed to come next; 0: no guess
        self._common = 0  # tokens before the place that are the newest tokens too
        self._lost = self._lost_at = 0  # a place that was followed for long, and the text's length then
        self._earlier = earlier
        self._elsewhere, self._alike = 0, 0  # place and common, in the earlier texts
        self.acceptance = Acceptance(_USUAL)

    def __len__(self) -> int:
        return len(self._tokens)

    def extend(self, tokens: Iterable[int]) -> None:
        """The text goes on."""
        for token in tokens:
            self._push(token)

    def _push(self, token: int) -> None:
        self._judge(token)
        tokens = self._tokens
        tokens.append(token)
        end = len(tokens)
        few = self._few.note(end, token, tokens[end - FEW - 1] if end > FEW else 0)
        many = self._many.note(end, token, tokens[end - MANY - 1] if end > MANY else 0)
        if not self._place:
            self._follow(many, MANY) or self._follow(few, FEW) or self._find_again(token)
        if not self._elsewhere:
            self._follow_elsewhere(self._earlier.find(self._many.hash))

    def _judge(self, token: int) -> None:
        """Compare what was guessed with what came, and go on behind it where that is the same."""
        if self._place:
            right = self._tokens[self._place] == token
            self.acceptance.note(_class(self._common), right)
            if right:
                self._place += 1
                self._common += 1
            else:
                if self._common >= MANY:
                    self._lost, self._lost_at = self._place, len(self._tokens)
                self._place = self._common = 0
        if self._elsewhere:
            there = self._earlier.at(self._elsewhere)
            if there is not None:
                self.acceptance.note(_class_elsewhere(self._alike), there == token)
            self._elsewhere = self._elsewhere + 1 if there == token else 0
            self._alike = self._alike + 1 if there == token else 0

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

    def _follow_elsewhere(self, place: int) -> None:
        if place and (common := self._earlier.common(place, self._tokens, _COMPARED)) >= MANY:
            self._elsewhere, self._alike = place, common

    def guess(self, most: int) -> Guess:
        """The tokens that came at the place that is followed. Where it is so near that they end, they are
        taken to repeat."""
        rates = self.acceptance.rates
        here = (rates[_class(self._common)], self._common) if self._place else (0.0, 0)
        there = (rates[_class_elsewhere(self._alike)], self._alike) if self._elsewhere else (0.0, 0)
        if there > here and (tokens := self._earlier.after(self._elsewhere, most)):
            return self._guess(tokens, [_class_elsewhere(self._alike + i) for i in range(len(tokens))])
        if not self._place or most < 1:
            return NO_GUESS
        tokens = self._tokens[self._place : self._place + most].tolist()
        while len(tokens) < most:
            tokens += tokens[: most - len(tokens)]
        return self._guess(tokens, [_class(self._common + i) for i in range(most)])

    def _guess(self, tokens: list[int], classes: list[int]) -> Guess:
        """As many of the tokens as are not unlikely."""
        chances, chance = [], 1.0
        for kind in classes:
            chance *= self.acceptance.rates[kind]
            if chance < _UNLIKELY:
                break
            chances.append(chance)
        return Guess(tokens[: len(chances)], chances)


def _class(common: int) -> int:
    return _CLASS[min(common, _COMPARED)]


def _class_elsewhere(common: int) -> int:
    return _ELSEWHERE + (common >= _COMPARED)


class Ngrams:
    """A drafter that needs no model. `ctx`: tokens that a sequence may have."""

    def __init__(self, ctx: int) -> None:
        self._ctx = ctx
        self._copying: dict[Sequence, Copying] = {}
        self._earlier = Earlier(MANY)

    def guesses(self, sequences: Many[Sequence], most: int, _seconds: float) -> list[Guess]:
        return [self._seen(sequence).guess(most) for sequence in sequences]

    def forget(self, sequence: Sequence) -> None:
        if self._copying.pop(sequence, None) is not None:
            # With as much of its prompt as its first token is found by.
            self._earlier.add(sequence.tokens[max(0, sequence.prompt_length - MANY) :])

    def _seen(self, sequence: Sequence) -> Copying:
        copying = self._copying.get(sequence)
        if copying is None:
            prompt = sequence.tokens[: sequence.prompt_length]
            limit = sequence.request.max_tokens
            most = self._ctx if limit is None else min(self._ctx, sequence.prompt_length + limit)
            copying = self._copying[sequence] = Copying(prompt, most, self._earlier)
        copying.extend(sequence.tokens[len(copying) :].tolist())
        return copying
