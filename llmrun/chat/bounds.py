"""How far foreign code may go in this process: memory, and time where nothing else can end it.

A template's operations count their own time and look at the size of their values first
(`llmrun.chat.render_context`). The memory that one takes, a text padded to gigabytes, only the system can
bound, and the time of one that was overlooked. Both bounds hold for the whole process, so this is for a
process that serves one model.
"""

from __future__ import annotations

import faulthandler
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

MEMORY = 1024 * 1024 * 1024
"""Bytes beyond what the process has. Ten times what the longest prompt's rendering needs."""
SECONDS = 60
"""Far more than the longest rendering is given, on a machine however busy."""


_within = False


@contextmanager
def bounded() -> Iterator[None]:
    """Run foreign code: past `MEMORY` it gets MemoryError (on Linux; elsewhere what there is), past `SECONDS`
    the process ends, with the traceback on stderr. One thread at a time. Within another, the outer one's
    bounds hold for both."""
    global _within
    if _within:
        yield
        return
    _within = True
    try:
        with _memory():
            # The interpreter cannot end an operation in C; this timer needs no interpreter.
            faulthandler.dump_traceback_later(SECONDS, exit=True, file=sys.__stderr__ or sys.stderr)
            try:
                yield
            finally:
                faulthandler.cancel_dump_traceback_later()
    finally:
        _within = False


if sys.platform == "linux":
    import resource

    @contextmanager
    def _memory() -> Iterator[None]:
        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        wanted = psutil.Process().memory_info().data + MEMORY
        allowed = [limit for limit in (wanted, soft, hard) if limit != resource.RLIM_INFINITY]
        resource.setrlimit(resource.RLIMIT_DATA, (min(allowed), hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))

else:

    @contextmanager
    def _memory() -> Iterator[None]:
        yield
