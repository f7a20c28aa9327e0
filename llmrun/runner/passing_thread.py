"""Native work before a model's own thread runs, on a thread that ends with it.

OpenMP keeps a team of compute threads for every thread that ever computed. Once those of all teams are more
than there are cores, libgomp lets none of them spin for more than 100 rounds before it sleeps
(`gomp_throttled_spin_count_var` in its env.c), and on few cores answers take twice as long. A team ends with
the thread that it was for.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def on_passing_thread(work: Callable[[], None]) -> None:
    """Do `work` on a thread of its own, and wait until that has ended. Raises what `work` raises, and
    RuntimeError where there is no memory for the thread's stack."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(work).result()
