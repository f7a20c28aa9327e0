"""What Python code gets for a question: an answer's text, and beside it all else that is known of it.

In: the events of one request with one answer, wherever it was made. Knows neither engine nor HTTP.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

from llmrun.types import Event, Finished, FinishReason, Reasoning, Stopped, Text, Timings, Usage
from llmrun.types.said import Said

Events = Generator[Event, None, None]


class Reply(str):
    """A whole answer, its text; `reasoning` is what the model thought before it, "" where it did not."""

    __slots__ = ("finish_reason", "reasoning", "timings", "usage")

    reasoning: str
    finish_reason: FinishReason | None
    usage: Usage | None
    timings: Timings | None


class ReplyStream(Said, Iterator[str]):
    """An answer piece by piece. Iterate it for its text, or `parts()` for its reasoning too; once.

    `text` and `reasoning` are what came so far; the rest is known at the end. `close()`, or letting go of it,
    ends an answer that is still being made. Not thread-safe.
    """

    def __init__(self, events: Events) -> None:
        super().__init__()
        self._events = events
        self.finish_reason: FinishReason | None = None
        self.usage: Usage | None = None
        self.timings: Timings | None = None

    def parts(self) -> Iterator[Text | Reasoning]:
        """Pieces of reasoning, then of text; each has its words in `text`."""
        for event in self._events:
            if isinstance(event, Text | Reasoning):
                self.take(event)
                yield event
            elif isinstance(event, Stopped):
                self.finish_reason = event.reason
            elif isinstance(event, Finished):
                self.usage, self.timings = event.usage, event.timings

    def __next__(self) -> str:
        return next(part.text for part in self.parts() if isinstance(part, Text))

    def close(self) -> None:
        """End it where it is. Harmless when called again."""
        self._events.close()

    def __enter__(self) -> ReplyStream:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def whole(self) -> Reply:
        """All of it, waited for."""
        for _ in self.parts():
            pass
        reply = Reply(self.text)
        reply.reasoning = self.reasoning
        reply.finish_reason, reply.usage, reply.timings = self.finish_reason, self.usage, self.timings
        return reply
