"""Streams and remote files, given the `read` and `seek` that a header is read with.

Neither knows GGUF or HTTP; both hold no more than one block.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from llmrun.errors import BAD_FILE, LlmrunError

FIRST_BLOCK, LARGEST_BLOCK = 256 << 10, 4 << 20
MOST = 64 << 20  # bytes fetched for one header; the largest vocabularies take 20 MB
_DISCARD = 1 << 20


class Reader(Protocol):
    """What a header needs of a file. `read` gives at most `count` bytes, and none only at the end."""

    def read(self, count: int, /) -> bytes: ...

    def seek(self, position: int, /) -> object: ...


class Readable(Protocol):
    """A stream: a pipe, an upload, a response."""

    def read(self, count: int, /) -> bytes: ...


class Forward:
    """A stream that can be seeked forward, by reading and forgetting."""

    def __init__(self, stream: Readable) -> None:
        self._stream = stream
        self._position = 0

    def read(self, count: int, /) -> bytes:
        """`count` bytes; fewer only where the stream ends."""
        parts = []
        while count and (part := self._stream.read(count)):
            parts.append(part)
            count -= len(part)
            self._position += len(part)
        return b"".join(parts)

    def seek(self, position: int, /) -> None:
        while (left := position - self._position) > 0 and self.read(min(left, _DISCARD)):
            pass


class Ranges:
    """A file of which `fetch(start, end)` gives the bytes from `start` up to but without `end`. Blocks grow
    while they are read one after the other, so that a long header costs few requests."""

    def __init__(self, fetch: Callable[[int, int], bytes], size: int) -> None:
        self._fetch = fetch
        self._size = size
        self._position = 0
        self._block = b""
        self._start = 0
        self._grow = FIRST_BLOCK
        self.fetched = 0

    def read(self, count: int, /) -> bytes:
        """Up to `count` bytes, as many as are here already; none only at the end. BAD_FILE where a header
        asks for more than any has."""
        if self._position >= self._size:
            return b""
        if not 0 <= self._position - self._start < len(self._block):
            self._load()
        at = self._position - self._start
        part = self._block[at : at + count]
        self._position += len(part)
        return part

    def seek(self, position: int, /) -> None:
        self._position = position

    def _load(self) -> None:
        end = min(self._position + self._grow, self._size)
        if self.fetched + end - self._position > MOST:
            raise LlmrunError(BAD_FILE, f"its header is longer than {MOST >> 20} MB", hint="use another file")
        self._block, self._start = self._fetch(self._position, end), self._position
        if len(self._block) != end - self._position:
            raise LlmrunError(BAD_FILE, "a range came short", hint="try again")
        self.fetched += len(self._block)
        self._grow = min(2 * self._grow, LARGEST_BLOCK)
