"""Tokens with their texts, as llama-server has them."""

from __future__ import annotations

from llmrun.api.oneline import Json
from llmrun.types import Tokenized


def token_pieces(event: Tokenized) -> list[Json]:
    """Ids with their texts; bytes that are no text are given as numbers."""
    pairs = zip(event.tokens, event.pieces, strict=True)
    return [{"id": token, "piece": _piece(raw)} for token, raw in pairs]


def _piece(raw: bytes) -> str | list[int]:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return list(raw)
