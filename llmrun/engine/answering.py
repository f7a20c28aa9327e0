"""Takes the tokens chosen for an answer into its sequence, and says what became certain by them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from llmrun.engine.choosing import Chooser, Chosen
from llmrun.engine.logprobs import token_logprob
from llmrun.engine.sequence import Sequence
from llmrun.llama import Context
from llmrun.types import FinishReason, Limit, SamplerStage, Stopped, Text


class Taken(NamedTuple):
    """What one step added to an answer: `tokens`, the last of them chosen at output row `row`; the text
    that is certain now; `reason`: why the answer is complete, if it is, and the `limit` that ended it."""

    tokens: int
    row: int
    text: Text | None
    reason: FinishReason | None
    limit: Limit | None


def take(
    sequence: Sequence, chosen: Iterable[Chosen], chooser: Chooser, context: Context, seconds: float
) -> Taken:
    """Append tokens until the answer is complete or no more are to be had; at least one. `seconds`: how
    long the answer is being decoded."""
    text, count, row, reason, over = "", 0, 0, None, False
    for token, row, stages in chosen:
        sequence.append(token)
        count += 1
        ended = context.model.vocab.is_eog(token)
        piece = _text(sequence, token, ended, context)
        if not ended:
            _note_logprob(sequence, token, row, context, stages)
            ended = chooser.ended
        reason = sequence.finish_reason(ended, context.ctx)
        if reason is not None and sequence.text.stopped is None:
            piece += sequence.text.flush()
        if sequence.lines is not None:
            piece, over = sequence.lines.take(piece, seconds, last=reason is not None)
            reason = "length" if over else reason
        text += piece
        if reason is not None or sequence.full:
            break
    limit: Limit | None = None
    if reason == "length":
        limit = "lines" if over else sequence.limit(context.ctx)
    return Taken(count, row, sequence.said(text), reason, limit)


def _text(sequence: Sequence, token: int, ends: bool, context: Context) -> str:
    """The text that is certain after a token."""
    request, guide = sequence.request, sequence.constraint
    if request.tokens:
        sequence.pending_tokens.append(token)
    if ends and token not in request.shown:
        return ""
    piece = request.shown.get(token) or context.model.vocab.piece(token)
    return sequence.text.push(piece, guide is not None and guide.quiet)


def _note_logprob(
    sequence: Sequence, token: int, row: int, context: Context, stages: tuple[SamplerStage, ...]
) -> None:
    if (top := sequence.request.logprobs) is not None:
        entry = token_logprob(context.logits(row), token, top, context.model.vocab.piece, stages)
        sequence.pending_logprobs.append(entry)


def stopped(sequence: Sequence, reason: FinishReason, limit: Limit | None) -> Stopped:
    """The event that ends an answer."""
    tokens = tuple(sequence.tokens.tolist()) if sequence.request.tokens else ()
    return Stopped(sequence.index, reason, sequence.text.stopped, tokens, limit, sequence.left_out)
