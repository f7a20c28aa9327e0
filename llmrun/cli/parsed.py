"""A model's raw text to the message it means, by a chat template's syntax, as a JSON object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from llmrun.chat.syntax import (
    FALLBACK,
    ArgumentsPiece,
    CallPiece,
    ContentPiece,
    OutputParser,
    Piece,
    ReasoningPiece,
    Syntax,
    derive,
)
from llmrun.chat.template import ChatTemplate
from llmrun.types import Tool


def parsed(
    text: str, template: str, tokens: Mapping[str, str], tools: Sequence[Tool], *, stream: bool
) -> dict[str, Any]:
    """The assistant's message in `text`. Calls without an id of their own get `call_0` and so on.

    A template that knows no tools has its models call as `llmrun.chat.syntax.FALLBACK` says.
    """
    syntax = derive(ChatTemplate(template), tokens)
    if syntax.calls is None:
        syntax = replace(syntax, calls=FALLBACK.calls, after_content=FALLBACK.after_content)
    parser = OutputParser(syntax, tools, "" if _opens_itself(syntax, text) else syntax.primed)
    pieces = [piece for part in (text if stream else [text]) for piece in parser.feed(part)]
    return _message([*pieces, *parser.close()])


def _opens_itself(syntax: Syntax, text: str) -> bool:
    """Whether the text holds what the prompt would have begun, so it was not left out."""
    return text.lstrip().startswith(syntax.primed.strip())


def _message(pieces: Iterable[Piece]) -> dict[str, Any]:
    content, reasoning = "", ""
    calls: list[dict[str, Any]] = []
    for piece in pieces:
        if isinstance(piece, ContentPiece):
            content += piece.text
        elif isinstance(piece, ReasoningPiece):
            reasoning += piece.text
        elif isinstance(piece, CallPiece):
            function = {"name": piece.name, "arguments": ""}
            calls.append({"id": piece.id or f"call_{piece.call}", "type": "function", "function": function})
        elif isinstance(piece, ArgumentsPiece):
            calls[piece.call]["function"]["arguments"] += piece.text
    return {
        "role": "assistant",
        "content": content,
        "reasoning_content": reasoning or None,
        "tool_calls": calls,
    }
