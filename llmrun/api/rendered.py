"""The reply to who asked for a text and no answer: a rendered prompt, the text of tokens."""

from __future__ import annotations

from llmrun.api.oneline import Json
from llmrun.types import Event, Rendered


class RenderedText:
    """The reply: the text as the field `name`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._text = ""

    def add(self, _request: int, event: Event) -> None:
        if isinstance(event, Rendered):
            self._text = event.text

    def body(self) -> Json:
        return {self._name: self._text}
