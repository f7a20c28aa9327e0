"""Ollama's names in ours: `NAME` and `NAME:latest` mean the same there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from llmrun.errors import UNKNOWN_MODEL, LlmrunError

T = TypeVar("T")
LATEST = ":latest"


async def by_name(call: Callable[[str], Awaitable[T]], name: str) -> T:
    """What `call` makes of `name`, or where it knows no such model, of the name without `:latest`.
    LlmrunError UNKNOWN_MODEL for the name as it was given."""
    try:
        return await call(name)
    except LlmrunError as error:
        if error.kind is not UNKNOWN_MODEL or not name.endswith(LATEST):
            raise
        try:
            return await call(name.removesuffix(LATEST))
        except LlmrunError as other:
            raise (error if other.kind is UNKNOWN_MODEL else other) from None
