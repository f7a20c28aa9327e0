from __future__ import annotations

import numpy as np
import pytest

from llmrun.engine.resident import Resident


def resident(*steps: tuple[int, int]) -> Resident:
    """Of so many tokens computed in such steps."""
    kv = Resident(0, np.arange(1000, dtype=np.int32))
    for tokens, step in steps:
        kv.compute(np.arange(tokens, dtype=np.int32), step)
    return kv


@pytest.mark.parametrize(
    ("length", "step", "shareable"),
    [
        (100, 2, True),  # all of it
        (99, 2, True),  # no step came since, so what is behind the window is still there
        (60, 2, True),
        (59, 2, False),  # the last step may have given away what this needs
        (99, 3, False),
        (100, 3, True),
        (99, None, False),
    ],
)
def test_resident_that_outgrew_its_window_shares_its_beginnings_until_the_next_step(
    length: int, step: int | None, shareable: bool
) -> None:
    assert resident((60, 1), (40, 2)).shareable(length, 50, step) is shareable


@pytest.mark.parametrize("window", [0, 101])
def test_resident_without_a_window_or_within_it_shares_every_beginning(window: int) -> None:
    kv = resident((60, 1), (40, 2))
    assert all(kv.shareable(length, window, step) for length in (1, 60, 100) for step in (2, 9, None))


def test_resident_that_was_brought_back_shares_only_the_whole() -> None:
    kv = Resident(0, np.arange(1000, dtype=np.int32))
    kv.extend(np.arange(100, dtype=np.int32))
    assert [kv.shareable(length, 50, 7) for length in (99, 100)] == [False, True]
