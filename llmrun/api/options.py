"""Generation options that the dialects name alike, from a checked body to `Options`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from llmrun.types import Options


class Sampled(Protocol):
    """A body with these fields; `None` in one means that it was not sent."""

    temperature: float | None
    top_k: int | None
    top_p: float | None
    min_p: float | None
    typical_p: float | None
    repeat_penalty: float | None
    repeat_last_n: int | None
    presence_penalty: float | None
    frequency_penalty: float | None
    seed: int | None


def options_of(
    body: Sampled, *, max_tokens: int | None, stop: Sequence[str] | None, ctx: int | None
) -> Options:
    """What `body` sets, in the daemon's words; a seed of −1 asks for a fresh one."""
    return Options(
        temperature=body.temperature,
        top_k=body.top_k,
        top_p=body.top_p,
        min_p=body.min_p,
        typical_p=body.typical_p,
        repeat_penalty=body.repeat_penalty,
        repeat_last_n=body.repeat_last_n,
        presence_penalty=body.presence_penalty,
        frequency_penalty=body.frequency_penalty,
        seed=None if body.seed == -1 else body.seed,
        max_tokens=max_tokens,
        stop=tuple(stop or ()),
        ctx=ctx,
    )
