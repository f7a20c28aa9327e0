"""Replies as lines of JSON (NDJSON), and errors in Ollama's shape."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable

from llmrun.api.delivery import LiveStream
from llmrun.api.inflight import InFlight
from llmrun.api.oneline import one_line
from llmrun.errors import UNKNOWN_MODEL, LlmrunError

Json = dict[str, object]


def line(value: object) -> bytes:
    """`value` as one line of a stream."""
    return one_line(value) + b"\n"


def error_body(error: LlmrunError) -> Json:
    """`{"error": …}`. Scripts look for "not found" in what they are told of a model that is not here."""
    what = "model not found: " if error.kind is UNKNOWN_MODEL else ""
    return {"error": f"{what}{error}"}


def error_line(error: LlmrunError) -> bytes:
    """The same as the last line of a stream that broke."""
    return line(error_body(error))


class LineStream(LiveStream):
    """A stream of lines; `ping` makes one that says nothing new."""

    def __init__(
        self, in_flight: InFlight, lines: AsyncGenerator[bytes, None], ping: Callable[[], bytes]
    ) -> None:
        super().__init__(in_flight, lines, error_line, ping, "application/x-ndjson")
