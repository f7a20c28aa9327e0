"""Cuts the bytes a runner writes into frame bodies, however the pipe delivers them."""

from __future__ import annotations

from collections.abc import Iterator

from llmrun.runner.frames import PREFIX_SIZE, frame_length


class FrameSplitter:
    def __init__(self) -> None:
        self._buffer = bytearray()

    @property
    def pending(self) -> int:
        """Bytes of a frame that is not complete."""
        return len(self._buffer)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The bodies that `data` completes, in order. ValueError where a length is no frame's."""
        self._buffer += data
        start = 0
        try:
            while len(self._buffer) - start >= PREFIX_SIZE:
                body = start + PREFIX_SIZE
                end = body + frame_length(bytes(self._buffer[start:body]))
                if end > len(self._buffer):
                    return
                start = end
                yield bytes(self._buffer[body:end])
        finally:
            del self._buffer[:start]
