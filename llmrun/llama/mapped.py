"""Gives back the memory of those parts of mapped model files that nobody reads again.

llama.cpp maps a model's files, and copies out of them the weights that it repacks for the CPU. The pages that
it read stay resident beside the copies, as much again. One that is read after all comes back from the page
cache. Knows no models and no weights; does nothing where there is no `/proc`.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path

_DONTNEED, _NOHUGEPAGE = 4, 15  # Linux's MADV_…

Parts = Mapping[Path, Sequence[tuple[int, int]]]
"""Of each file byte ranges in order, from the first byte to behind the last one."""


def release(parts: Parts) -> None:
    """Let go of the resident pages that lie within `parts` of the files, wherever these are mapped now.

    Huge pages are not used there: letting go of a part of one unmaps all of it, and what is read of it again
    comes back with its neighbours.
    """
    wanted = {str(path.resolve()): ranges for path, ranges in parts.items() if ranges}
    if not wanted:
        return
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for start, end, offset, name in _mappings(wanted):
        inside = [
            (max(start, _up(start + begin - offset)), min(end, _down(start + behind - offset)))
            for begin, behind in wanted[name]
        ]
        whole = [(first, last) for first, last in inside if first < last]
        if whole:
            advise(whole[0][0], whole[-1][1] - whole[0][0], _NOHUGEPAGE)
        for first, last in whole:
            advise(first, last - first, _DONTNEED)


def _up(address: int) -> int:
    return -(-address // mmap.PAGESIZE) * mmap.PAGESIZE


def _down(address: int) -> int:
    return address // mmap.PAGESIZE * mmap.PAGESIZE


def _mappings(names: Container[str]) -> Iterator[tuple[int, int, int, str]]:
    """Start, end, place in the file and path of what this process maps of the files `names`, to read only."""
    try:
        lines = Path("/proc/self/maps").read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return
    for line in lines:
        span, rights, offset, _device, _inode, *name = line.split(maxsplit=5)
        if name and name[0] in names and rights.startswith("r--"):
            start, end = span.split("-")
            yield int(start, 16), int(end, 16), int(offset, 16), name[0]
