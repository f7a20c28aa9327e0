"""Who computes first where cores are short.

A decoding step ends when the last of its threads does. Beside a process that burns a core, one of two threads
has half a core, and the answer half its speed. Where the system allows it (to root, or by RLIMIT_NICE), the
engine's thread asks for more; the compute threads that it starts inherit that. The others of the process, and
what they serve, keep their place.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading

_NICE = -8
"""On a core that is shared with one ordinary process: six sevenths."""


def prefer_this_thread() -> None:
    """Let the calling thread, and those it starts from now on, run before others. Only Linux has a priority
    per thread."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
