"""Native work beside the engine's, on a thread that ends with it.

OpenMP keeps a team of compute threads for every thread that ever computed. Once those of all teams are more
than there are cores, libgomp lets none of them spin for more than 100 rounds before it sleeps
(`gomp_throttled_spin_count_var` in its env.c), and on few cores answers take twice as long. A team ends with
the thread that it was for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from llmrun.runner.meanwhile import beside

Result = TypeVar("Result")


def on_passing_thread(work: Callable[[], Result]) -> Result:
    """The result of `work`, done on a thread of its own that has ended then; or on this one, where there is
    no memory for another. Raises what `work` raises."""
    with beside(work) as done:
        pass
    return done.result()
