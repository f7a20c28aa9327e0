"""Whether memory ran out, however Python, the system's loader or a library words that; and the error that
says so.

In: an exception. Out: an LlmrunError. Knows no models.
"""

from __future__ import annotations

import errno
import mmap

from llmrun.errors import NO_MEMORY, LlmrunError

_WORDS = ("cannot allocate memory", "failed to map segment", "can't start new thread", "bad_alloc")
SPARE = 32 << 20
"""Bytes; a process that cannot have as much more is at its end, whatever it says."""


def exhausted(error: BaseException, doing: str, *, spare: int = SPARE) -> LlmrunError | None:
    """NO_MEMORY where `error` came of it, or `spare` more bytes cannot be had now; else None. `doing` says
    what for, in words that follow "memory ran out"."""
    if is_exhaustion(error) or not _can_have(spare):
        return LlmrunError(NO_MEMORY, f"memory ran out {doing}")
    return None


def is_exhaustion(error: BaseException) -> bool:
    """True for want of memory, also where the loader could not map a library or a thread had no stack."""
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    said = str(error).lower()
    return isinstance(error, OSError | ImportError | RuntimeError) and any(words in said for words in _WORDS)


def _can_have(size: int) -> bool:
    try:
        mmap.mmap(-1, size).close()
    except OSError:
        return False
    return True
