"""What the grammar of an answer allows next: token ids out, token ids in.

Grammars are llguidance's (https://github.com/guidance-ai/llguidance/blob/main/docs/syntax.md), ready
made: nothing here knows JSON Schema or any other notation they come from.

Cost of a step's choice among what the mask allows, in milliseconds (scripts/bench/structured.py, two cores;
llguidance takes another 0.03 to 0.1 for the mask itself):

vocabulary   free   20 tokens allowed   one in 20   nearly all
    49,152   0.12                0.02        0.03         0.15
   151,936   0.40                0.03        0.15         0.48
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from llguidance import LLMatcher, LLParserLimits, LLTokenizer

from llmrun.errors import INVALID_REQUEST, LlmrunError

# llguidance's own bounds keep a step within some 15 ms. This one bounds memory: a state of the lexer
# takes 1 to 2 kB, and its default of 250,000 lets one hostile pattern grow by half a gigabyte.
_LIMITS = LLParserLimits(max_lexer_states=50_000, verbose_errors=False)
_KEPT = 16


class GrammarRefused(Exception):
    """llguidance cannot compile a grammar; the text says why, in its words."""


class Constraint:
    """One answer's way through its grammar. The answer is complete when `ended`.

    A token is taken from `forced` where that has any, else sampled out of `allowed`; each is given back
    to `accept`, in order. Calls from one thread. They raise INVALID_REQUEST where the grammar turns out
    to be more than llguidance's limits let it follow.
    """

    thought = 0
    quiet = False

    def __init__(self, matcher: LLMatcher, vocab_size: int, encode: Callable[[bytes], list[int]]) -> None:
        self._encode = encode
        self._matcher = matcher
        self._vocab_size = vocab_size

    def fresh(self) -> Constraint:
        """Another of the same grammar, as far on its way as this one."""
        return Constraint(self._matcher.deep_copy(), self._vocab_size, self._encode)

    def enter(self, text: bytes) -> bool:
        """Go on by `text` where the grammar takes all of it; else say False and change nothing."""
        tokens = self._encode(text)
        if self._matcher.validate_tokens(tokens) < len(tokens):
            return False
        for token in tokens:
            self.accept(token)
        return True

    def allowed(self) -> npt.NDArray[np.intp]:
        """Ids of the tokens that may come next, at least one; end tokens only where the answer may end.

        llguidance's mask has one bit a token, lowest bit first; bits past the vocabulary are padding.
        """
        mask = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
        self._check()
        bits = np.unpackbits(mask, count=self._vocab_size, bitorder="little")
        return np.flatnonzero(bits.view(bool))  # of booleans, which is ten times as fast as of bytes

    def forced(self) -> list[int]:
        """The tokens that must come next, as far as no choice is left. Changes nothing."""
        return self._matcher.compute_ff_tokens()

    def replaces(self, _token: int) -> bool:
        """What is allowed may stand."""
        return False

    def accept(self, token: int) -> None:
        """The answer goes on with this token."""
        self._matcher.consume_token(token)
        self._check()

    @property
    def ended(self) -> bool:
        """Whether nothing but an end token can follow."""
        return self._matcher.is_stopped()

    def _check(self) -> None:
        if self._matcher.is_error():
            reason = self._matcher.get_error().partition("\n")[0]
            if "doesn't satisfy the grammar" in reason:  # of a token that it forced itself
                raise LlmrunError(
                    INVALID_REQUEST,
                    "the output is to hold a text for which this model's vocabulary has no tokens",
                    hint="leave rare characters out of the grammar",
                )
            raise LlmrunError(
                INVALID_REQUEST, f"the grammar of the output is too complex: {reason}", hint="simplify it"
            )


class Grammars:
    """Compiles grammars for one model and keeps the newest. Used by one thread, and not the engine's.

    make_tokenizer  makes the model's tokenizer, at the first grammar
    """

    def __init__(self, make_tokenizer: Callable[[], LLTokenizer]) -> None:
        self._make_tokenizer = make_tokenizer
        self._tokenizer: LLTokenizer | None = None
        self._compiled: OrderedDict[str, LLMatcher] = OrderedDict()

    def start(self, grammar: str, count: int) -> tuple[Constraint, ...]:
        """`count` constraints at the grammar's beginning. GrammarRefused where it cannot be compiled."""
        if self._tokenizer is None:
            self._tokenizer = self._make_tokenizer()
        matcher = self._compiled.pop(grammar, None) or _compile(self._tokenizer, grammar)
        self._compiled[grammar] = matcher
        if len(self._compiled) > _KEPT:
            self._compiled.popitem(last=False)
        tokenizer = self._tokenizer
        return tuple(
            Constraint(matcher.deep_copy(), tokenizer.vocab_size, tokenizer.tokenize_bytes)
            for _ in range(count)
        )


def _compile(tokenizer: LLTokenizer, grammar: str) -> LLMatcher:
    matcher = LLMatcher(tokenizer, grammar, log_level=0, limits=_LIMITS)
    # Some grammars compile and then exceed a limit with their first token.
    trial = matcher if matcher.is_error() else matcher.deep_copy()
    if not trial.is_error():
        trial.compute_bitmask()
    if trial.is_error():
        raise GrammarRefused(trial.get_error())
    return matcher
