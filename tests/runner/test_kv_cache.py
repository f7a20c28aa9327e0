from __future__ import annotations

import pytest

from llmrun.runner.kv_cache import most_retained
from llmrun.store.anatomy import Anatomy, Layer


def _shape(active: int, layers: int, heads: int) -> Anatomy:
    return Anatomy((Layer(0, 64, 64, 0),) * layers, (), active, vocab=1, embd=1, ff=1, heads=heads)


@pytest.mark.parametrize(
    ("read", "layers", "heads", "cells"),
    [(87_000_000, 30, 9, 201), (4_000_000_000, 32, 32, 2_441), (1_000_000, 30, 9, 2), (1_000_000, 0, 0, 625)],
)
def test_most_retained_is_more_the_more_a_step_reads_for_each_head(
    read: int, layers: int, heads: int, cells: int
) -> None:
    assert most_retained(_shape(read, layers, heads)) == cells
