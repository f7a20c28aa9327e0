"""What the parser makes of a model's text, in order. Joined texts are the message."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class ContentPiece:
    """More of the answer's content."""

    text: str


@dataclass(frozen=True)
class ReasoningPiece:
    """More of the reasoning."""

    text: str


@dataclass(frozen=True)
class CallPiece:
    """A tool call begins, the `call`-th of the turn from 0. `id` is what the text itself carries, else ""."""

    call: int
    name: str
    id: str = ""


@dataclass(frozen=True)
class ArgumentsPiece:
    """More of the JSON text of a call's arguments, whatever form the model wrote them in."""

    call: int
    text: str


@dataclass(frozen=True)
class CallEndPiece:
    """A call ends. Not `complete`: the length limit cut it, or its arguments are no JSON object; their text
    is then what there was."""

    call: int
    complete: bool


Piece = ContentPiece | ReasoningPiece | CallPiece | ArgumentsPiece | CallEndPiece


def merged(pieces: Iterable[Piece]) -> list[Piece]:
    """The same with texts of one kind that follow each other joined."""
    result: list[Piece] = []
    texts: list[str] = []
    for piece in pieces:
        last = result[-1] if result else None
        if isinstance(piece, CallPiece | CallEndPiece) or type(piece) is not type(last):
            _join(result, texts)
            result.append(piece)
        if not isinstance(piece, CallPiece | CallEndPiece):
            texts.append(piece.text)
    _join(result, texts)
    return result


def _join(result: list[Piece], texts: list[str]) -> None:
    """Give the last piece its texts."""
    if result and not isinstance(last := result[-1], CallPiece | CallEndPiece):
        result[-1] = replace(last, text="".join(texts))
    texts.clear()
