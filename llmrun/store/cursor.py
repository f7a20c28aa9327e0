"""Bounded forward reading of a little-endian binary file. In: an open file. Out: numbers, texts, skips.

Every length is checked against what is left of the file before anything is read or allocated; whatever does
not fit raises `Bad`. Knows nothing of GGUF beyond how it writes numbers and strings (u64 length, then UTF-8).
"""

from __future__ import annotations

import contextlib
import struct
import sys

from llmrun.store.byte_sources import Reader

MAX_KEPT = 16 << 20  # bytes of memory for all texts and arrays together
WINDOW = 1 << 20  # bytes read from the file at once

U32 = struct.Struct("<I")
U64 = struct.Struct("<Q")


class Bad(Exception):
    """What is wrong with the bytes; becomes BAD_FILE where the file's name is known."""


class Cursor:
    """Reads forward through a file of `size` bytes, a window at a time, never past its end."""

    def __init__(self, file: Reader, size: int) -> None:
        self._file = file
        self.size = size
        self._window = b""
        self._start = 0  # of the window in the file
        self._at = 0  # in the window
        self.kept = 0

    @property
    def position(self) -> int:
        return self._start + self._at

    @property
    def left(self) -> int:
        return self.size - self.position

    def seek(self, position: int) -> None:
        if position > self.size:
            raise Bad("it ends in the middle of its header")
        self._file.seek(position)
        self._window, self._start, self._at = b"", position, 0

    def _ensure(self, count: int) -> None:
        """Make the window hold the next `count` bytes (at most a window's worth or one text)."""
        if self._at + count <= len(self._window):
            return
        if count > self.left or not self._fill(count):
            raise Bad("it ends in the middle of its header")

    def _fill(self, count: int) -> bool:
        """Read on until the window holds `count` bytes from here; False where the file ends before."""
        parts = [self._window[self._at :]]
        self._start, self._at = self.position, 0
        held = len(parts[0])
        while held < count and (part := self._file.read(max(count - held, WINDOW))):
            parts.append(part)
            held += len(part)
        self._window = b"".join(parts)
        return held >= count

    def scalar(self, form: struct.Struct) -> int | float | bool:
        self._ensure(form.size)
        value: int | float | bool = form.unpack_from(self._window, self._at)[0]
        self._at += form.size
        return value

    def u32(self) -> int:
        return int(self.scalar(U32))

    def u64(self) -> int:
        return int(self.scalar(U64))

    def raw(self, count: int) -> bytes:
        self._ensure(count)
        value = self._window[self._at : self._at + count]
        self._at += count
        return value

    def text(self, limit: int) -> str:
        length = self.u64()
        if length > limit:
            raise Bad(f"a text of {length} bytes is more than the {limit} that are taken")
        if length > self.left:
            raise Bad("it ends in the middle of its header")
        text = self.raw(length).decode("utf-8", "replace")
        self.keep(sys.getsizeof(text))  # up to four times its bytes
        return text

    def keep(self, size: int) -> None:
        """Note that `size` bytes of memory are taken for good. Bad where they are too many."""
        self.kept += size
        if self.kept > MAX_KEPT:
            raise Bad(f"its metadata takes more than {MAX_KEPT} bytes")

    def skip(self, count: int) -> None:
        if count > self.left:
            raise Bad("it ends in the middle of its header")
        if self._at + count <= len(self._window):
            self._at += count
        else:
            self.seek(self.position + count)

    def skip_strings(self, count: int) -> None:
        """Step over `count` strings. The inner loop is the whole cost of a large vocabulary."""
        unpack = U64.unpack_from
        while count:
            self._ensure(8)
            window, at, stepped = self._window, self._at, 0
            # Cheaper than to compare: beyond the window, unpacking fails.
            with contextlib.suppress(struct.error, OverflowError):
                while stepped < count:
                    at += 8 + unpack(window, at)[0]
                    stepped += 1
            count -= stepped
            self.skip(at - self._at)
