"""What an answer has said so far. In: its pieces as they come. Out: its text, and its reasoning before it."""

from __future__ import annotations

from llmrun.types.events import Reasoning, Text


class Said:
    """One answer's words. Not thread-safe."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._reasoning: list[str] = []

    @property
    def text(self) -> str:
        return "".join(self._text)

    @property
    def reasoning(self) -> str:
        """What the model thought before it answered."""
        return "".join(self._reasoning)

    def take(self, piece: Text | Reasoning) -> None:
        """The next piece of this answer."""
        (self._text if isinstance(piece, Text) else self._reasoning).append(piece.text)
