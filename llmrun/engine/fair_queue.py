"""Sequences that have not begun, in the order in which it is fair to begin them. Pure.

First by priority. Then clients take turns, whoever has the fewest running first: one with 200 requests does
not make another wait for all of them. Requests of one client keep their order.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Iterable, Iterator

from llmrun.engine.sequence import Sequence

_Line = tuple[int, str]  # priority, client


class FairQueue:
    """Not thread-safe."""

    def __init__(self) -> None:
        self._lines: dict[_Line, deque[Sequence]] = {}

    def __bool__(self) -> bool:
        return bool(self._lines)

    def __len__(self) -> int:
        return sum(map(len, self._lines.values()))

    def add(self, sequence: Sequence) -> None:
        """Queue a sequence behind those of its client and priority."""
        self._lines.setdefault(_line(sequence), deque()).append(sequence)

    def remove(self, sequence: Sequence) -> None:
        """Take a sequence out; ValueError where it is not in here."""
        line = self._lines.get(_line(sequence), deque())
        line.remove(sequence)
        if not line:
            del self._lines[_line(sequence)]

    def ordered(self, running: Iterable[Sequence]) -> Iterator[Sequence]:
        """All of them, as they should begin beside those that run. Nothing may be added meanwhile."""
        busy = Counter(sequence.request.client for sequence in running)
        lines = {line: iter(list(waiting)) for line, waiting in self._lines.items()}
        heap: list[tuple[int, int, float, int, _Line, Sequence]] = []

        def push(line: _Line) -> None:
            sequence = next(lines[line], None)
            if sequence is not None:
                request = sequence.request
                order = (request.priority, busy[request.client], request.arrived, sequence.index)
                heapq.heappush(heap, (*order, line, sequence))

        for line in lines:
            push(line)
        while heap:
            *_, line, sequence = heapq.heappop(heap)
            busy[sequence.request.client] += 1
            yield sequence
            push(line)


def _line(sequence: Sequence) -> _Line:
    return sequence.request.priority, sequence.request.client
