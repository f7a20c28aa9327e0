"""One whole answer, gathered from its events. Knows no dialect."""

from __future__ import annotations

from llmrun.api.oneline import Json
from llmrun.types import (
    CallArguments,
    CallStarted,
    FinishReason,
    Limit,
    Reasoning,
    Stopped,
    Text,
    TokenLogprob,
)
from llmrun.types.said import Said

OfAnswer = Text | Reasoning | CallStarted | CallArguments | Stopped
"""The events that say something of one answer, whose number they carry."""


def limited(limit: Limit | None) -> Json:
    """The field `limit`, which is ours: what cut an answer, where its dialect has but one word for all that
    may. Nothing where none did."""
    return {"limit": limit} if limit else {}


class GatheredCall:
    """A tool call of an answer."""

    def __init__(self, id: str, name: str) -> None:
        self.id = id
        self.name = name
        self._arguments: list[str] = []

    @property
    def arguments(self) -> str:
        """JSON text, whole unless the length limit cut it."""
        return "".join(self._arguments)

    def add(self, text: str) -> None:
        self._arguments.append(text)


class Gathered(Said):
    """What an answer has so far; `logprobs` are those of its text, `reason` is None until its end; `limit`
    is what cut it, if anything did."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[GatheredCall] = []
        self.logprobs: list[TokenLogprob] = []
        self.reason: FinishReason | None = None
        self.limit: Limit | None = None
        self.stop_sequence: str | None = None

    def add(self, event: OfAnswer) -> None:
        """Take the next event of this answer."""
        match event:
            case Text():
                self.take(event)
                self.logprobs.extend(event.logprobs)
            case Reasoning():
                self.take(event)
            case CallStarted():
                self.calls.append(GatheredCall(event.id, event.name))
            case CallArguments():
                self.calls[event.call].add(event.text)
            case Stopped():
                self.reason, self.stop_sequence = event.reason, event.stop_sequence
                self.limit = event.limit
