"""Parsing in tests: a whole text, or one character at a time, and the message that comes of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from llmrun.chat.syntax import (
    ArgumentsPiece,
    CallEndPiece,
    CallPiece,
    ContentPiece,
    OutputParser,
    Piece,
    ReasoningPiece,
    Syntax,
)
from llmrun.types import Tool


@dataclass
class ParsedCall:
    name: str
    id: str = ""
    text: str = ""
    complete: bool | None = None

    @property
    def arguments(self) -> Any:
        return json.loads(self.text)


@dataclass
class Parsed:
    content: str = ""
    reasoning: str = ""
    calls: list[ParsedCall] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        return [call.name for call in self.calls]


def folded(pieces: Iterable[Piece]) -> Parsed:
    result = Parsed()
    for piece in pieces:
        if isinstance(piece, ContentPiece):
            result.content += piece.text
        elif isinstance(piece, ReasoningPiece):
            result.reasoning += piece.text
        elif isinstance(piece, CallPiece):
            assert piece.call == len(result.calls)
            result.calls.append(ParsedCall(piece.name, piece.id))
        elif isinstance(piece, ArgumentsPiece):
            result.calls[piece.call].text += piece.text
        else:
            assert isinstance(piece, CallEndPiece)
            assert result.calls[piece.call].complete is None
            result.calls[piece.call].complete = piece.complete
    return result


def parsed(
    text: str,
    syntax: Syntax,
    tools: Iterable[Tool] = (),
    *,
    primed: str = "",
    cut: bool = False,
    inline: bool = False,
) -> Parsed:
    """The message in `text`; the same whether it comes at once or bit by bit, or the test fails."""
    tools = tuple(tools)
    results = []
    for feeds in ([text], list(text)):
        parser = OutputParser(syntax, tools, primed, inline=inline)
        pieces = [piece for feed in feeds for piece in parser.feed(feed)]
        results.append(folded([*pieces, *parser.close(cut)]))
    assert results[0] == results[1]
    return results[0]
