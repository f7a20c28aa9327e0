"""One answer as it arrives: an iterator that knows, when it is through, how it ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import msgspec

from llmrun.client.sse import event_data
from llmrun.client.wire import Chunk, Part
from llmrun.errors import DAEMON_UNREACHABLE, INTERNAL, LlmrunError
from llmrun.types import FinishReason, Limit, Reasoning, Text, Timings, Usage
from llmrun.types.said import Said

END = "[DONE]"
_decoder = msgspec.json.Decoder(Chunk)


class Answer(Said):
    """Iterate it once, for its text or by `parts`; `finish_reason`, `limit`, `usage` and `timings` are set
    then.

    A context manager: leaving it closes the connection, which cancels an answer still being made.
    What came so far is in `text` and `reasoning`. Not thread-safe.
    """

    def __init__(self, response: httpx.Response) -> None:
        super().__init__()
        self._response = response
        self.finish_reason: FinishReason | None = None
        self.limit: Limit | None = None
        self.usage: Usage | None = None
        self.timings: Timings | None = None

    def __iter__(self) -> Iterator[str]:
        """Pieces of text alone; else as `parts`."""
        return (part.text for part in self.parts() if isinstance(part, Text))

    def parts(self) -> Iterator[Part]:
        """How far the prompt is, then pieces of reasoning and of text. LlmrunError where the daemon reports
        an error midway, or is gone."""
        try:
            for data in event_data(self._response.iter_bytes()):
                if data == END:
                    return
                yield from self._take(data)
        except httpx.HTTPError as error:
            raise _cut_off() from error
        raise _cut_off()

    def _take(self, data: str) -> Iterator[Part]:
        try:
            chunk = _decoder.decode(data)
        except msgspec.DecodeError as error:
            raise LlmrunError(INTERNAL, f"the daemon sent a chunk that cannot be read: {error}") from None
        if chunk.error:
            raise chunk.error.error()
        self.usage = chunk.usage.usage() if chunk.usage else self.usage
        self.timings = chunk.timings or self.timings
        for choice in chunk.choices:
            self.finish_reason = choice.finish_reason or self.finish_reason
            self.limit = choice.limit or self.limit
        for part in chunk.parts():
            if isinstance(part, Text | Reasoning):
                self.take(part)
            yield part

    def result(self) -> dict[str, Any]:
        """What is known of the answer, for JSON."""
        return {
            "text": self.text,
            "reasoning": self.reasoning or None,
            "finish_reason": self.finish_reason,
            **({"limit": self.limit} if self.limit else {}),
            "usage": msgspec.to_builtins(self.usage),
            "timings": msgspec.to_builtins(self.timings),
        }

    def close(self) -> None:
        """Hang up. Twice is harmless."""
        self._response.close()

    def __enter__(self) -> Answer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _cut_off() -> LlmrunError:
    return LlmrunError(
        DAEMON_UNREACHABLE,
        "the daemon went away in the middle of the answer",
        hint="run it again; the reason is in llmrun logs",
    )
