"""Scripts of a service that embeds and ranks."""

from __future__ import annotations

from array import array
from collections.abc import AsyncGenerator

from llmrun.types import (
    AnyRequest,
    Embedded,
    EmbedRequest,
    Event,
    Finished,
    Ranked,
    RankRequest,
    Timings,
    Usage,
)

SCORES = (0.5, -1.25, 4.0, 0.5)
TIMINGS = Timings(queue_ms=3.0, prefill_ms=20.0, decode_ms=0.0, ttft_ms=23.0, itl_ms=0.0, load_ms=2.0)


def vector(number: int, cut: int = 0) -> Embedded:
    """That of input `number`: (number, 0.1, -2), in float32."""
    return Embedded(number, array("f", [number, 0.1, -2.0]).tobytes(), cut)


async def vectors(request: AnyRequest) -> AsyncGenerator[Event, None]:
    """A vector for each input, of which the second was cut; or a score for each document."""
    if isinstance(request, EmbedRequest):
        for number in range(len(request.inputs)):
            yield vector(number, 7 if number == 1 and request.truncate else 0)
    if isinstance(request, RankRequest):
        for number in range(len(request.documents)):
            yield Ranked(number, SCORES[number])
    yield Finished(Usage(prompt=12, completion=0), TIMINGS)
