"""Guesses of a small model that has the same vocabulary, for all answers together.

It reads what each answer has become, in a KV cache of its own, and takes its likeliest token again and again.
Its KV follows the answer: what it guessed wrong is cut away, and a long text that is new to it is read in
parts, one a step, without guessing meanwhile.

Every guess costs a step of the small model. It goes on while the guesses, by their chances, are worth more of
the large model's time than that; and it rests, longer each time, while they were worth less in fact.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Many
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from llmrun.engine.drafting.acceptance import Acceptance
from llmrun.engine.drafting.guess import NO_GUESS, Guess
from llmrun.engine.resident import common_prefix
from llmrun.engine.sequence import Sequence
from llmrun.llama import Batch, Context, DecodeStatus

# Classes of guesses by the small model's own probability of them, and how often each is usually right.
_BOUNDS = np.array([0.3, 0.5, 0.7, 0.9], np.float32)
_USUAL = (0.25, 0.4, 0.6, 0.8, 0.93)
_UNLIKELY = 0.1
_READ = 256  # tokens of new text that are read in one step
_JUDGED = 8  # guesses after which it is asked whether they pay
_MOST_REST = 256  # steps


@dataclass
class _Followed:
    """One answer as the small model knows it: `seen` are the tokens in its KV, guesses included."""

    slot: int
    seen: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    guessed: list[int] = field(default_factory=list)
    kinds: list[int] = field(default_factory=list)
    length: int = 0  # of the sequence when they were guessed
    accepted: int = 0  # guesses that had become part of it by then
    acceptance: Acceptance = field(default_factory=lambda: Acceptance(_USUAL))


class DraftModel:
    """A drafter over `context`, a small model's own. `vocab`: tokens of the large one. `clock`: seconds."""

    def __init__(self, context: Context, vocab: int, clock: Callable[[], float]) -> None:
        self._context = context
        self._vocab = vocab
        self._clock = clock
        self._batch = Batch(_READ + context.slots)
        self._free = list(range(context.slots))
        self._followed: dict[Sequence, _Followed] = {}
        self._step = 0.0  # seconds of one of its steps
        self._gain = 0.0  # seconds won so far, less those spent
        self._judged = 0
        self._rest, self._next_rest = 0, 16

    def guesses(self, sequences: Many[Sequence], most: int, seconds: float) -> list[Guess]:
        if self._resting(sequences, seconds):
            return [NO_GUESS] * len(sequences)
        began = self._clock()
        found = {sequence: Guess([], []) for sequence in sequences}
        ready = [s for s in sequences if self._follow(s, sequences) and s.length < self._context.ctx]
        rows = self._read(ready)
        for _ in range(most):
            rows = self._guess(rows, found, seconds)
            if not rows:
                break
        self._gain -= self._clock() - began
        for sequence, guess in found.items():
            if sequence in self._followed:
                self._followed[sequence].guessed = list(guess.tokens)
        return [found[sequence] for sequence in sequences]

    def forget(self, sequence: Sequence) -> None:
        if followed := self._followed.pop(sequence, None):
            self._context.drop(followed.slot)
            self._free.append(followed.slot)

    # --- whether it pays

    def _resting(self, sequences: Many[Sequence], seconds: float) -> bool:
        """Judge the last guesses by what was said; `seconds`: what each right one saved."""
        for sequence in sequences:
            if (followed := self._followed.get(sequence)) and followed.guessed:
                _note(followed, sequence)
                self._gain += seconds / len(sequences) * (sequence.accepted - followed.accepted)
                self._judged += 1
        if self._judged >= _JUDGED:
            if self._gain < 0:
                self._rest, self._next_rest = self._next_rest, min(2 * self._next_rest, _MOST_REST)
            else:
                self._next_rest = 16
            self._gain, self._judged = 0.0, 0
        self._rest = max(0, self._rest - 1)
        return self._rest > 0

    # --- reading

    def _follow(self, sequence: Sequence, wanted: Many[Sequence]) -> bool:
        """Give the sequence a slot, if need be that of one that is not `wanted`; cut wrong guesses away."""
        followed = self._followed.get(sequence)
        if followed is None:
            if not self._free:
                self.forget(next((s for s in self._followed if s not in wanted), sequence))
            if not self._free:
                return False
            followed = self._followed[sequence] = _Followed(self._free.pop())
        # The last token is always computed: its logits are wanted.
        right = min(common_prefix(followed.seen, sequence.tokens), sequence.length - 1)
        if right < len(followed.seen):
            self._context.trim(followed.slot, right)
            followed.seen = followed.seen[:right]
        followed.kinds, followed.length, followed.accepted = [], sequence.length, sequence.accepted
        return True

    def _read(self, sequences: list[Sequence]) -> dict[Sequence, int]:
        """Compute what is new in the sequences, as far as one step goes; the output rows of those that are
        read to the end."""
        self._batch.clear()
        rest, rows = _READ, {}
        for sequence in sorted(sequences, key=lambda s: s.length - len(self._followed[s].seen)):
            followed = self._followed[sequence]
            start = len(followed.seen)
            new = sequence.tokens[start : start + rest]
            if not len(new):
                break
            whole = start + len(new) == sequence.length
            row = self._batch.add(new, start, followed.slot, int(whole))
            followed.seen = sequence.tokens[: start + len(new)].copy()
            rest -= len(new)
            if whole:
                rows[sequence] = row
        return rows if self._decode() else {}

    def _guess(
        self, rows: dict[Sequence, int], found: dict[Sequence, Guess], seconds: float
    ) -> dict[Sequence, int]:
        """Note the likeliest token of each row, and compute those that are worth going on from."""
        going: dict[Sequence, int] = {}
        for sequence, row in rows.items():
            token, kind = _likeliest(self._context.logits(row))
            followed, guess = self._followed[sequence], found[sequence]
            chance = (guess.chances[-1] if guess.chances else 1.0) * followed.acceptance.rates[kind]
            if token >= self._vocab or chance < _UNLIKELY:
                continue
            guess.tokens.append(token)
            guess.chances.append(chance)
            followed.kinds.append(kind)
            if sequence.length + len(guess.tokens) < self._context.ctx:
                going[sequence] = token
        worth = sum(found[sequence].chances[-1] for sequence in going) * seconds / max(1, len(found))
        if worth <= self._step:
            return {}
        self._batch.clear()
        rows = {}
        for sequence, token in going.items():
            followed = self._followed[sequence]
            one = np.array([token], np.int32)
            rows[sequence] = self._batch.add(one, len(followed.seen), followed.slot, 1)
            followed.seen = np.append(followed.seen, one)
        began = self._clock()
        if not self._decode():
            return {}
        took = self._clock() - began
        self._step = took if not self._step else 0.8 * self._step + 0.2 * took
        return rows

    def _decode(self) -> bool:
        """Whether the batch was computed. Where it has no place all is forgotten, to be read again."""
        if not self._batch.rows:
            return False
        if self._context.decode(self._batch) is DecodeStatus.OK:
            return True
        for sequence in list(self._followed):
            self.forget(sequence)
        self._rest = _MOST_REST
        return False


def _note(followed: _Followed, sequence: Sequence) -> None:
    """Judge the guesses by the tokens that came, whether they were computed or not."""
    came = sequence.tokens[followed.length :].tolist()
    for guess, token, kind in zip(followed.guessed, came, followed.kinds, strict=False):
        followed.acceptance.note(kind, guess == token)
        if guess != token:
            break
    followed.guessed = []


def _likeliest(logits: npt.NDArray[np.float32]) -> tuple[int, int]:
    """The likeliest token, and the class of its probability."""
    token = int(logits.argmax())
    probability = 1 / float(np.exp(logits - logits[token]).sum())
    return token, int(np.searchsorted(_BOUNDS, probability))
