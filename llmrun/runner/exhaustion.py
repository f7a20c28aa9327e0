"""The error that says that memory ran out, however that shows.

In: an exception. Out: an LlmrunError. Knows no models.
"""

from __future__ import annotations

import mmap

from llmrun.errors import NO_MEMORY, LlmrunError, is_exhaustion, tells_of_exhaustion

SPARE = 32 << 20
"""Bytes; a process that cannot have as much more is at its end, whatever it says."""


def exhausted(error: BaseException, doing: str, *, spare: int = SPARE) -> LlmrunError | None:
    """NO_MEMORY where `error` came of it, or `spare` more bytes cannot be had now; else None. `doing` says
    what for, in words that follow "memory ran out"."""
    said = isinstance(error, LlmrunError) and tells_of_exhaustion(error.message)  # llama.cpp's words
    if said or is_exhaustion(error) or not _can_have(spare):
        return LlmrunError(NO_MEMORY, f"memory ran out {doing}")
    return None


def _can_have(size: int) -> bool:
    try:
        mmap.mmap(-1, size).close()
    except OSError:
        return False
    return True
