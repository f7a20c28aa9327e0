"""What a request forbids: end tokens, for a while or for good, and strings; and which tokens it may bias."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence

from llmrun.engine import Guide
from llmrun.engine.vetoes import BannedStrings, Spellings, Vetoes
from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.llama import Vocab
from llmrun.types import Options

_NO_TEXT = "\N{REPLACEMENT CHARACTER}"


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
        self, guides: Sequence[Guide], options: Options, n: int, logit_bias: Mapping[int, float]
    ) -> tuple[tuple[Guide, ...], dict[int, float]]:
        """The guides of `n` answers with what options and biases forbid, and all biases on tokens.

        `guides` is empty where answers are free, and stays so where nothing is to be watched on the way: a
        bias is enough then. Of tokens that a guide allows all could be ruled out, and a sampler would take
        one of them all the same. INVALID_REQUEST where no token is left at all.
        """
        endings, size = self._vocab.eog_tokens, self._vocab.size
        biases = dict(logit_bias)
        if options.ignore_eos:
            biases.update(dict.fromkeys(endings, -math.inf))
        banned = self._banned(options.banned_strings or ())
        if banned is not None:
            biases.update(dict.fromkeys(banned.always, -math.inf))
        never = {token for token, bias in biases.items() if bias == -math.inf}
        if len(never) == size:
            raise LlmrunError(INVALID_REQUEST, "logit_bias leaves no token to choose", field="logit_bias")
        least = 0 if options.ignore_eos else options.min_tokens or 0
        if "infill" in (options.samplers or ()) and (guides or least or never & endings):
            raise LlmrunError(
                INVALID_REQUEST,
                "the infill sampler ends answers by a rule of its own: no grammar, min_tokens or ban of end"
                " tokens can hold beside it",
                hint="leave infill out of samplers",
                field="samplers",
            )
        never -= endings  # where a grammar leaves nothing else, the answer is complete
        if banned is None and not least and not (guides and never):
            return tuple(guides), biases
        inner: Sequence[Guide | None] = guides or [None] * n
        return tuple(
            Vetoes(each, banned, never=never, least=least, endings=endings, size=size) for each in inner
        ), biases

    def _banned(self, strings: Sequence[str]) -> BannedStrings | None:
        if not strings:
            return None
        if any(_NO_TEXT in string for string in strings):
            raise LlmrunError(
                INVALID_REQUEST,
                f"banned_strings has {_NO_TEXT!r}, which stands for bytes that are no text",
                field="banned_strings",
            )
        return BannedStrings([string.encode("utf-8", "replace") for string in strings], self._spellings)
