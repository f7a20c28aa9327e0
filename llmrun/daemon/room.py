"""How many models fit in memory together.

With `max_loaded` set, that count decides and nothing else. With `auto`, bytes decide: the budget is the
memory that was available when none of our models was loaded (measured afresh each time that is so, and
less a reserve for everything else), because the figure is misleading later: pages of a mapped model file
count as available. A model not loaded yet is taken to need what is planned for it (see `weighing`), a
loaded one what its runner reported. One model alone may always try: its runner knows best, and says so when
it does not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import psutil

from llmrun.runner.frames import ModelInfo

RESERVE = 0.1


def available_memory() -> int:
    """Bytes that new processes can have without swapping, as the system reckons."""
    return int(psutil.virtual_memory().available)


def real_cost(info: ModelInfo) -> int:
    """Bytes that a loaded model holds."""
    return info.size + info.kv_bytes


class Room:
    """Decides from costs in bytes; `available` tells the memory that can be had."""

    def __init__(self, max_loaded: int | None, available: Callable[[], int] = available_memory) -> None:
        self._max_loaded = max_loaded
        self._available = available
        self._budget = 0

    def measure(self) -> None:
        """To be called while no model is loaded, before the first one is."""
        self._budget = int(self._available() * (1 - RESERVE))

    def most(self, costs: Sequence[int]) -> int:
        """Bytes that can be had once models of these costs have left."""
        return self._available() + sum(costs)

    def fits(self, costs: Sequence[int], more: int) -> bool:
        """Whether a model of cost `more` has room beside those of `costs`; beside none, always."""
        if not costs:
            return True
        if self._max_loaded is not None:
            return len(costs) < self._max_loaded
        return sum(costs) + more <= self._budget
