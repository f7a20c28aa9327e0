"""A fuzzer: valid inputs are damaged again and again, and what reaches new lines is damaged further.

In: a target, which is what reads and some inputs that it can read. Out: the inputs that it did not survive.
To survive is to return, or to raise an error of ours, in time.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import llmrun
from llmrun.errors import LlmrunError

OURS = str(Path(llmrun.__file__).parent)
SECONDS = 3.0  # of the thread, for one input, watched: a hundred times what an honest one takes
LONGEST = 64 * 1024
_NUMBERS = (0, 1, 2, 3, 8, 9, 127, 128, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1)


@dataclass(frozen=True)
class Target:
    """read   takes any bytes
    seeds  what it can read
    words  what its language is made of
    may    errors beside ours that say "no" there
    """

    read: Callable[[bytes], object]
    seeds: Sequence[bytes]
    words: Sequence[bytes] = ()
    may: tuple[type[Exception], ...] = ()


@dataclass(frozen=True)
class Fall:
    """An input that was not survived, and how that looked."""

    data: bytes
    why: str


class Fuzzer:
    """Runs one target. The same seed draws the same inputs for as long as the code is the same."""

    def __init__(self, target: Target, seed: int) -> None:
        self._target = target
        self._draw = random.Random(seed)
        self._seen: set[tuple[str, int]] = set()
        self.corpus: list[bytes] = []
        self.runs = 0
        for each in target.seeds:
            if fall := self.run(each):
                raise AssertionError(f"a seed is not survived: {fall}")
            self.corpus.append(each)

    @property
    def lines(self) -> int:
        """Lines of ours that were reached."""
        return len(self._seen)

    def falls(self, *, runs: int | None = None, seconds: float | None = None) -> list[Fall]:
        """Damage and read until one of the bounds is met; one fall of each kind."""
        found: dict[str, Fall] = {}
        ends = time.monotonic() + seconds if seconds else None
        last = self.runs + (runs or sys.maxsize)
        while self.runs < last and (ends is None or time.monotonic() < ends):
            data = self._damaged()
            before = self.lines
            if fall := self.run(data):
                found.setdefault(fall.why.partition(":")[0], fall)
            elif self.lines > before:
                self.corpus.append(data)
        return list(found.values())

    def run(self, data: bytes) -> Fall | None:
        """Read one input, and note which lines that reached."""
        self.runs += 1
        began = time.thread_time()
        sys.settrace(self._trace)
        try:
            self._target.read(data)
        except (LlmrunError, *self._target.may):
            pass
        except Exception as error:
            return Fall(data, f"{type(error).__name__}: {str(error)[:200]}")
        finally:
            sys.settrace(None)
        took = time.thread_time() - began
        return Fall(data, f"slow: {took:.1f} s") if took > SECONDS else None

    def _trace(self, frame: FrameType, _event: str, _arg: Any) -> Any:
        if not frame.f_code.co_filename.startswith(OURS):
            return None
        return self._line

    def _line(self, frame: FrameType, event: str, _arg: Any) -> Any:
        if event == "line":
            self._seen.add((frame.f_code.co_filename, frame.f_lineno))
        return self._line

    def _damaged(self) -> bytes:
        draw = self._draw
        data = bytearray(draw.choice(self.corpus))
        for _ in range(draw.choice((1, 1, 1, 2, 3, 6))):
            draw.choice(
                (self._flip, self._number, self._cut, self._double, self._word, self._join, self._noise)
            )(data)
        return bytes(data[:LONGEST])

    def _place(self, data: bytearray) -> tuple[int, int]:
        """Where a piece of the input begins and ends: mostly a short one."""
        at = self._draw.randint(0, len(data))
        length = self._draw.choice((1, 2, 4, 8, 16, 64, len(data)))
        return at, min(len(data), at + length)

    def _flip(self, data: bytearray) -> None:
        if data:
            data[self._draw.randrange(len(data))] ^= 1 << self._draw.randrange(8)

    def _number(self, data: bytearray) -> None:
        width = self._draw.choice((1, 2, 4, 8))
        value = self._draw.choice(_NUMBERS) % (1 << 8 * width)
        at = self._draw.randint(0, len(data))
        data[at : at + width] = value.to_bytes(width, "little")

    def _cut(self, data: bytearray) -> None:
        start, end = self._place(data)
        del data[start:end]

    def _double(self, data: bytearray) -> None:
        start, end = self._place(data)
        times = self._draw.choice((1, 2, 10, 1000))
        data[end:end] = (bytes(data[start:end]) * times)[:LONGEST]

    def _word(self, data: bytearray) -> None:
        if self._target.words:
            at = self._draw.randint(0, len(data))
            data[at:at] = self._draw.choice(self._target.words)

    def _join(self, data: bytearray) -> None:
        other = self._draw.choice(self.corpus)
        start, end = self._place(data)
        data[start:end] = other[self._draw.randint(0, len(other)) :][: self._draw.choice((8, 64, 4096))]

    def _noise(self, data: bytearray) -> None:
        at = self._draw.randint(0, len(data))
        data[at:at] = self._draw.randbytes(self._draw.choice((1, 2, 4, 16)))
