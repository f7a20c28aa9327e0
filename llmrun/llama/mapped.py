"""Gives back the memory of model files that were mapped and read.

llama.cpp maps a model's file, and copies out of it the weights that it repacks for the CPU. The pages it read
stay resident beside the copies, as much again as the weights. What is needed of them after all comes back
from the kernel's page cache when it is touched. Knows no models; does nothing where there is no `/proc`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

_DONTNEED = 4  # MADV_DONTNEED of Linux


def release_pages(folder: Path) -> None:
    """Let go of the resident pages of all files mapped out of `folder`."""
    for start, end in _mappings(folder):
        ctypes.CDLL(None).madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _DONTNEED)


def _mappings(folder: Path) -> Iterator[tuple[int, int]]:
    """The address ranges in which files of `folder` are mapped to be read only."""
    try:
        lines = Path("/proc/self/maps").read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return
    for line in lines:
        span, rights, *_, name = line.split(maxsplit=5)
        if rights.startswith("r--") and Path(name).parent == folder:
            start, end = span.split("-")
            yield int(start, 16), int(end, 16)
