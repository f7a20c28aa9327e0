"""Prompts that are longer than the context, where the request says what shall be left out. Pure.

Nothing is ever left out unasked: the default is an error with both numbers (INTERFACE: context_overflow).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from llmrun.engine.request import Shift
from llmrun.types import GenerateRequest, Limit, Message

Encode = Callable[[GenerateRequest], list[int]]


@dataclass(frozen=True)
class Fitted:
    """A prompt's ids, how many were left out of it, and how its answer goes on where the context is full.

    The ids may still be too many, where nothing may be left out.
    """

    ids: list[int]
    left_out: int = 0
    shift: Shift | None = None


def fit(request: GenerateRequest, ids: list[int], ctx: int, encode: Encode) -> Fitted:
    """The prompt as the request wants it where it is too long for `ctx` tokens; `encode` makes another's."""
    if request.overflow == "error":
        return Fitted(ids)
    most = ctx - answer_room(request.options.max_tokens, ctx)
    fits = len(ids) < ctx
    if request.overflow == "truncate_middle":
        return Fitted(ids) if fits else Fitted(without_middle(ids, most), len(ids) - most)
    shift = Shift(ctx, _beginning(request, ids, encode))
    if fits:
        return Fitted(ids, 0, shift)
    shorter = shortest_cut(request, encode, most) or without_oldest(ids, most, shift.keep)
    return Fitted(shorter, len(ids) - len(shorter), shift)


def answer_limit(max_tokens: int | None, room: int, shift: Shift | None) -> tuple[int, Limit]:
    """Tokens that an answer may have, and which limit that is. One that shifts and has no limit ends after a
    whole context of them."""
    if shift is not None:
        return shift.window if max_tokens is None else max_tokens, "tokens"
    if max_tokens is None or max_tokens > room:
        return room, "context"
    return max_tokens, "tokens"


def _beginning(request: GenerateRequest, ids: Sequence[int], encode: Encode) -> int:
    """How many tokens the prompt has in front of its turns: those of the system messages, and BOS."""
    messages = request.messages
    if not messages:
        return 1
    count = next((at for at, one in enumerate(messages) if one.role != "system"), len(messages))
    other = Message(role="user", content="\N{BLACK SQUARE}")
    alone = encode(msgspec.structs.replace(request, messages=(*messages[:count], other), continues=False))
    pairs = zip(ids, alone, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(ids), len(alone)))


def answer_room(max_tokens: int | None, ctx: int) -> int:
    """Tokens that a shortened prompt leaves for the answer: what it may take, a quarter of the context at
    most and at least one."""
    return max(1, min(max_tokens or ctx, ctx // 4))


def without_middle(tokens: Sequence[int], most: int) -> list[int]:
    """The first and the last half of `most` tokens."""
    head = -(-most // 2)
    return [*tokens[:head], *tokens[len(tokens) - (most - head) :]]


def without_oldest(tokens: Sequence[int], most: int, keep: int) -> list[int]:
    """The first `keep` tokens (half of `most` at most) and the newest behind them."""
    head = min(keep, most // 2)
    return [*tokens[:head], *tokens[len(tokens) - (most - head) :]]


def shorter_conversations(messages: Sequence[Message]) -> list[tuple[Message, ...]]:
    """The conversation without its oldest turns: each is one exchange shorter, the last begins with the last
    user's message. System messages in front stay."""
    first = next((at for at, message in enumerate(messages) if message.role != "system"), len(messages))
    system, turns = tuple(messages[:first]), messages[first:]
    starts = [at for at, message in enumerate(turns) if at and message.role == "user"]
    return [(*system, *turns[at:]) for at in starts]


def shortest_cut(request: GenerateRequest, encode: Encode, most: int) -> list[int] | None:
    """The prompt of the longest conversation, oldest turns left out, that has at most `most` tokens; None
    where even the last exchange has more. Renders the conversation a few times."""
    candidates = shorter_conversations(request.messages or ())
    low, high, found = 0, len(candidates), None
    while low < high:
        middle = (low + high) // 2
        tokens = encode(msgspec.structs.replace(request, messages=candidates[middle]))
        if len(tokens) <= most:
            found, high = tokens, middle
        else:
            low = middle + 1
    return found
