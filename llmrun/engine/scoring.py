"""The log probabilities of a prompt's own tokens, read from its rows of logits as these are computed."""

from __future__ import annotations

from llmrun.engine.finite import check_finite
from llmrun.engine.logprobs import token_logprob
from llmrun.engine.sequence import Sequence
from llmrun.llama import Context
from llmrun.types import PromptLogprobs, PromptToken

_BYTES = 32 * 2**20


def rows_at_once(vocab_size: int) -> int:
    """Rows of logits a step may have for this: llama.cpp keeps a buffer for them all, 4 bytes a token."""
    return max(16, _BYTES // (4 * vocab_size))


def score(sequence: Sequence, row: int, length: int, context: Context) -> PromptLogprobs:
    """What the last `length` computed tokens say of those behind them; `row` is the batch index of the first.

    The row of a token has the probabilities of the one behind it, so a prompt's first token has none.
    NotFinite where they are no numbers.
    """
    piece, tokens, start = context.model.vocab.piece, sequence.tokens, sequence.computed - length
    found = []
    if sequence.scored == 0:
        first = int(tokens[0])
        found.append(PromptToken(first, piece(first), None))
        sequence.scored = 1
    end = min(sequence.computed + 1, sequence.prompt_length)
    for place in range(max(sequence.scored, start + 1), end):
        logits = context.logits(row + place - 1 - start)
        check_finite(logits)
        entry = token_logprob(logits, int(tokens[place]), sequence.request.logprobs or 0, piece)
        found.append(PromptToken(entry.id, entry.raw, entry.logprob, entry.top))
    sequence.scored = max(sequence.scored, end)
    return PromptLogprobs(tuple(found))
