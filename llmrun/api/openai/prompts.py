"""Text, token ids, or a list of either: what completions take as a prompt, and embeddings as input."""

from __future__ import annotations

from llmrun.api.bounds import INT32
from llmrun.api.schema import wrong

MAX_PROMPTS = 2048

Prompt = str | tuple[int, ...]


def prompts(value: object) -> tuple[Prompt, ...]:
    """Text, token ids, or a list of either, as a tuple of prompts."""
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list):
        raise wrong("should be text, a list of token ids, or a list of these")
    if value and _is_token(value[0]):
        return (_tokens(value, ""),)
    if not 1 <= len(value) <= MAX_PROMPTS:
        raise wrong(f"should hold 1 to {MAX_PROMPTS} prompts, not {len(value)}")
    return tuple(
        item if isinstance(item, str) else _tokens(item, f"{number}") for number, item in enumerate(value)
    )


def _tokens(value: object, where: str) -> tuple[int, ...]:
    if not isinstance(value, list) or not value:
        raise wrong("should be text or a list of token ids", where)
    for number, item in enumerate(value):
        if not _is_token(item):
            raise wrong("should be a token id, a whole number from 0", f"{where}.{number}".lstrip("."))
    return tuple(value)


def _is_token(value: object) -> bool:
    return type(value) is int and 0 <= value <= INT32
