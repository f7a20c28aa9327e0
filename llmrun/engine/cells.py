"""Accounting of KV cells: who holds which, and how many are free.

llama.cpp's KV cache has a fixed number of cells; each stores one token's keys and values, in a unified cache
for one or more sequences. This mirrors it with numbered cells and two counts each, so that `free +
retained + running = total` holds at any time:

holders  sequences and retained prefixes that include the cell; 0 means free
pins     those of them that are running; a held cell without a pin is retained and may be evicted
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

CellIds = npt.NDArray[np.int32]


class Cells:
    """Counts only; the caller makes the matching calls on the context. Not thread-safe.

    streams: 1 where sequences can share cells; else each slot has one, with as many cells as a sequence may
    need, so that one with a slot never lacks any, whatever is free in all.
    """

    def __init__(self, total: int, streams: int = 1) -> None:
        self.total = total
        self.longest = total // streams
        """Tokens that one sequence may have."""
        self._unified = streams == 1
        self._stack = np.arange(total, dtype=np.int32)
        self.free = total
        self.running = 0
        self.peak = 0
        """The most cells that were in use at once since `reset_peak`."""
        self._holders = np.zeros(total, np.int32)
        self._pins = np.zeros(total, np.int32)

    @property
    def used(self) -> int:
        """Cells that anything holds."""
        return self.total - self.free

    def reset_peak(self) -> None:
        """Let `peak` begin with what is in use now."""
        self.peak = self.used

    @property
    def retained(self) -> int:
        """Cells that only retained prefixes hold."""
        return self.used - self.running

    def allocate(self, count: int) -> CellIds:
        """Take `count` free cells for a running sequence."""
        if count > self.free:
            raise ValueError(f"{count} cells wanted, {self.free} free")
        ids: CellIds = self._stack[self.free - count : self.free].copy()
        self.free -= count
        self.peak = max(self.peak, self.used)
        if count == 1:  # a decode row: one item costs a tenth of an index array
            self._holders[ids[0]] = self._pins[ids[0]] = 1
        else:
            self._holders[ids] = self._pins[ids] = 1
        self.running += count
        return ids

    def share(self, ids: CellIds) -> CellIds:
        """The cells of a running sequence that begins with what is in these: the same, or those of a copy. No
        id occurs twice in `ids`."""
        if not self._unified:
            return self.allocate(len(ids))
        self._holders[ids] += 1
        self.pin(ids)
        return ids

    def pin(self, ids: CellIds) -> None:
        """A retained holder of these cells runs again."""
        self.running += int(np.count_nonzero(self._pins[ids] == 0))
        self._pins[ids] += 1

    def unpin(self, ids: CellIds) -> None:
        """A running holder of these cells is only retained from now on."""
        self._pins[ids] -= 1
        self.running -= int(np.count_nonzero(self._pins[ids] == 0))

    def release(self, ids: CellIds) -> None:
        """A retained holder of these cells gives them up (unpin a running one first)."""
        self._holders[ids] -= 1
        freed = ids[self._holders[ids] == 0]
        self._stack[self.free : self.free + len(freed)] = freed
        self.free += len(freed)
