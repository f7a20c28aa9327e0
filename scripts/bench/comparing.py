"""A workload at llmrun and at a peer, in turns, and what came of it.

Both run on the same machine, whose speed changes from minute to minute: so each round asks one right after
the other, in changing order, and what counts is the median of the rounds' ratios.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any, TypeVar

from workloads import Figures

Side = TypeVar("Side")


@dataclass
class Comparison:
    """One figure of a workload: its values by round, with the wish that there is for it.

    ratio  how often as good as the peer llmrun has to be      more  how much of it llmrun may have more
    """

    workload: str
    figure: str
    peer: str
    better: str
    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)
    ratio: float | None = None
    more: float | None = None

    @property
    def times(self) -> float:
        """How many times as good as the peer llmrun is: above 1 is better."""
        pairs = zip(self.ours, self.theirs, strict=True)
        return median(a / b if self.better == "higher" else b / a for a, b in pairs)

    def as_json(self) -> dict[str, Any]:
        rounded = {name: [float(f"{one:.4g}") for one in getattr(self, name)] for name in ("ours", "theirs")}
        return {**vars(self), **rounded}


async def compare(
    name: str,
    workload: Callable[[Side], Awaitable[Figures]],
    ours: Side,
    theirs: Side,
    *,
    peer: str,
    rounds: int,
) -> list[Comparison]:
    """So many rounds of a workload at both."""
    found: dict[str, Comparison] = {}
    for turn in range(rounds):
        for mine in (True, False) if turn % 2 == 0 else (False, True):
            for what, figure in (await workload(ours if mine else theirs)).items():
                kept = found.setdefault(what, Comparison(name, what, peer, figure.better))
                (kept.ours if mine else kept.theirs).append(figure.value)
    return list(found.values())
