"""The tables of docs/performance.md: which workloads, on which model, against whom, what is wished for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import models

LLMRUN = "llmrun"
PEER = "llama-server"
PEER_SMALL_BATCH = "llama-server -b 256 -ub 256"
PEER_ALL_SLOTS = "llama-server -np 8"
PEER_DRAFTING = "llama-server --spec-type ngram-mod"
UNDRAFTED = "llmrun LLMRUN_DRAFT=off"
BOUNDED = "llmrun LLMRUN_CACHE_RAM=200M"


class Wish(NamedTuple):
    """`ratio`: how often as good as the peer at least. `more`: how much of it more at most."""

    ratio: float | None = None
    more: float | None = None


@dataclass(frozen=True)
class Case:
    """A workload against a peer; contestants are named as `contestants.named` reads them."""

    workload: str
    wishes: dict[str, Wish] = field(default_factory=dict)
    peer: str = PEER
    ours: str = LLMRUN
    rounds: int = 5


@dataclass(frozen=True)
class Suite:
    """A table: `model` gives its file."""

    about: str
    model: Callable[[], Path]
    cases: tuple[Case, ...]
    ctx: int = 16384


# The long prompt may take 1.3 times as long as at the peer.
_NO_LATER = Wish(1 / 1.3)

SUITES = {
    "small": Suite(
        "The default model, SmolLM2-135M, as Q4_0, made by `llmrun quantize smollm2:135m Q4_0 --again`",
        lambda: models.requantised("q4_0"),
        (
            Case("single", {"decode tokens/s": Wish(0.98)}, rounds=7),
            Case("streams", {"tokens/s": Wish(1.05)}),
            Case("streams", peer=PEER_ALL_SLOTS),
            Case("shared", {"mean TTFT s": Wish(4)}, rounds=3),
            Case("conversations", {"mean TTFT s": Wish(1.5)}, rounds=3),
            Case("objects", {"objects/s": Wish(1.8)}),
            Case("restart", {"TTFT s": Wish(10)}, rounds=3),
            Case(
                "arrival",
                {
                    "worst ITL s": Wish(10),
                    "long prompt's TTFT s": _NO_LATER,
                    "short prompt's TTFT s": Wish(5),
                },
            ),
            Case(
                "arrival",
                {"worst ITL s": Wish(2), "long prompt's TTFT s": _NO_LATER},
                peer=PEER_SMALL_BATCH,
            ),
            Case("busy", {"share of speed kept": Wish(2)}),
            Case(
                "start",
                {"start to first token s": Wish(more=0.5), "peak memory MB": Wish(more=60)},
            ),
            Case("growth", {}, ours=BOUNDED, rounds=1),
        ),
    ),
    "copying": Suite(
        "The default model as Q8_0, made by `llmrun quantize smollm2:135m Q8_0 --again`: it copies, its Q4_0"
        " does not",
        lambda: models.requantised("q8_0"),
        (
            Case("copy", {"decode tokens/s": Wish(1.8)}),
            Case("copy", {"decode tokens/s": Wish(1.0)}, peer=PEER_DRAFTING),
            Case(
                "fresh",
                {"decode tokens/s, greedy": Wish(0.98), "decode tokens/s, sampled": Wish(0.98)},
                peer=UNDRAFTED,
            ),
        ),
        ctx=4096,
    ),
    "billion": Suite(
        "A llama of a billion parameters (16 layers of 2,048, as Llama 3.2 1B) in Q4_0, of random weights",
        models.billion,
        (
            Case("single", {"decode tokens/s": Wish(0.98)}, rounds=5),
            Case("streams", {"tokens/s": Wish(1.05)}, rounds=3),
            Case("shared", {"mean TTFT s": Wish(4)}, rounds=1),
            Case("objects", {"objects/s": Wish(1.8)}, rounds=3),
            Case(
                "arrival",
                {
                    "worst ITL s": Wish(10),
                    "long prompt's TTFT s": _NO_LATER,
                    "short prompt's TTFT s": Wish(5),
                },
                rounds=3,
            ),
            Case(
                "arrival",
                {"worst ITL s": Wish(2), "long prompt's TTFT s": _NO_LATER},
                peer=PEER_SMALL_BATCH,
                rounds=2,
            ),
            Case("busy", {"share of speed kept": Wish(2)}, rounds=2),
            Case(
                "start",
                {"start to first token s": Wish(more=0.5), "peak memory MB": Wish(more=60)},
                rounds=3,
            ),
        ),
        ctx=8192,
    ),
}
