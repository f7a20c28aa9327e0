"""What a request forbids: end tokens, for a while or for good, and strings; and which tokens it may bias."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence

from llmrun.engine import Guide
from llmrun.engine.vetoes import BannedStrings, Spellings, Vetoes
from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.llama import Vocab
from llmrun.types import Options


class Limiter:
    """For one model; used by the threads that prepare requests."""

    def __init__(self, vocab: Vocab) -> None:
        self._vocab = vocab

    @functools.cached_property
    def _spellings(self) -> Spellings:
        return Spellings([self._vocab.piece(token) for token in range(self._vocab.size)])

    def check(self, logit_bias: Iterable[int]) -> None:
        """INVALID_REQUEST where a bias names a token that the vocabulary does not have."""
        for token in logit_bias:
            if not 0 <= token < self._vocab.size:
                raise LlmrunError(
                    INVALID_REQUEST,
                    f"logit_bias names token {token}, but the model's tokens are 0 to {self._vocab.size - 1}",
                    field="logit_bias",
                )

    def limit(
        self, guides: Sequence[Guide], options: Options, n: int
    ) -> tuple[tuple[Guide, ...], dict[int, float]]:
        """The guides of `n` answers with what the options forbid, and biases on tokens that never may come.

        `guides` is empty where answers are free, and stays so where nothing is to be watched on the way.
        """
        endings = self._vocab.eog_tokens
        biases = dict.fromkeys(endings, -math.inf) if options.ignore_eos else {}
        banned = self._banned(options.banned_strings or ())
        if banned is not None:
            biases.update(dict.fromkeys(banned.always, -math.inf))
        least = 0 if options.ignore_eos else options.min_tokens or 0
        if banned is None and not least:
            return tuple(guides), biases
        size = self._vocab.size
        inner: Sequence[Guide | None] = guides or [None] * n
        return tuple(Vetoes(each, banned, least=least, endings=endings, size=size) for each in inner), biases

    def _banned(self, strings: Sequence[str]) -> BannedStrings | None:
        if not strings:
            return None
        return BannedStrings([string.encode("utf-8", "replace") for string in strings], self._spellings)
