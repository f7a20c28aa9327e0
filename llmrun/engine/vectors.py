"""Requests for vectors or scores, and which of their inputs are computed together. Pure.

Inputs are taken from all open requests in turn, so that one with thousands of them does not make another
wait, and each request's own come in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from llmrun.llama.batch import Tokens
from llmrun.types import Timings, Usage


@dataclass(eq=False, kw_only=True)
class VectorRequest:
    """Inputs of at least one token each, ids of the model, and how far they are. Times in seconds.

    truncated   tokens that were cut from each input
    dimensions  leading numbers to keep; None: all
    normalize   whether vectors are brought to length 1
    score       of a ranker: which of its numbers is the score; None: vectors are wanted
    """

    id: str
    inputs: tuple[Tokens, ...]
    truncated: tuple[int, ...]
    arrived: float
    dimensions: int | None = None
    normalize: bool = True
    score: int | None = None
    taken: int = field(default=0, init=False)
    started: float | None = field(default=None, init=False)

    @property
    def tokens(self) -> int:
        return sum(map(len, self.inputs))

    def usage(self) -> Usage:
        return Usage(prompt=self.tokens, completion=0)

    def timings(self, now: float) -> Timings:
        """All of the work is prefill; there is no first token but the end."""
        started = now if self.started is None else self.started
        return Timings(
            queue_ms=(started - self.arrived) * 1e3,
            prefill_ms=(now - started) * 1e3,
            decode_ms=0.0,
            ttft_ms=(now - self.arrived) * 1e3,
            itl_ms=0.0,
        )


class Input(NamedTuple):
    """One input of a request, by its number."""

    request: VectorRequest
    number: int

    @property
    def tokens(self) -> Tokens:
        return self.request.inputs[self.number]


class Room(NamedTuple):
    """What one batch holds: so many sequences, and rows for all of them; each takes `rows_of` its tokens."""

    sequences: int
    rows: int
    rows_of: Callable[[int], int]


class VectorQueue:
    """Open requests with inputs that nobody has taken yet."""

    def __init__(self) -> None:
        self._requests: deque[VectorRequest] = deque()

    def __len__(self) -> int:
        return len(self._requests)

    def add(self, request: VectorRequest) -> None:
        self._requests.append(request)

    def remove(self, request: VectorRequest) -> None:
        """Give up what is left of it; harmless where nothing is."""
        if request in self._requests:
            self._requests.remove(request)

    @property
    def next_length(self) -> int:
        """Tokens of the input that is next. There is one."""
        request = self._requests[0]
        return len(request.inputs[request.taken])

    def take(self, room: Room) -> list[Input]:
        """The next inputs, as many as there is room for; the first in any case."""
        taken: list[Input] = []
        rows = 0
        while self._requests and len(taken) < room.sequences:
            rows += room.rows_of(self.next_length)
            if taken and rows > room.rows:
                break
            request = self._requests.popleft()
            taken.append(Input(request, request.taken))
            request.taken += 1
            if request.taken < len(request.inputs):
                self._requests.append(request)
        return taken
