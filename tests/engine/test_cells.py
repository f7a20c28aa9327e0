from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmrun.engine.cells import Cells


def test_allocate_more_than_free_raises() -> None:
    cells = Cells(4)
    cells.allocate(3)
    with pytest.raises(ValueError, match="2 cells wanted, 1 free"):
        cells.allocate(2)


def test_share_counts_a_cell_once() -> None:
    cells = Cells(8)
    prefix = cells.allocate(3)
    cells.share(prefix)
    assert (cells.free, cells.retained, cells.running) == (5, 0, 3)


def test_release_of_a_shared_cell_frees_it_with_its_last_holder() -> None:
    cells = Cells(8)
    prefix = cells.allocate(3)
    cells.share(prefix)
    for _ in range(2):
        cells.unpin(prefix)
    assert cells.retained == 3
    cells.release(prefix)
    assert cells.free == 5
    cells.release(prefix)
    assert cells.free == 8


def test_share_where_each_slot_has_its_cells_takes_as_many_more() -> None:
    cells = Cells(8, streams=2)
    assert cells.longest == 4
    prefix = cells.allocate(3)
    assert not set(cells.share(prefix)) & set(prefix)
    assert (cells.free, cells.running) == (2, 6)


@given(st.data())
def test_cells_after_any_calls_add_up_and_never_go_to_two_owners(data: st.DataObject) -> None:
    cells = Cells(16)
    running: list[np.ndarray] = []
    retained: list[np.ndarray] = []
    for _ in range(data.draw(st.integers(0, 40))):
        action = data.draw(st.sampled_from(["allocate", "share", "finish", "evict", "revive"]))
        if action == "allocate":
            running.append(cells.allocate(data.draw(st.integers(0, cells.free))))
        elif action == "share" and (running or retained):
            source = data.draw(st.sampled_from([*running, *retained]))
            shared = source[: data.draw(st.integers(0, len(source)))].copy()
            cells.share(shared)
            running.append(shared)
        elif action == "finish" and running:
            ids = running.pop(data.draw(st.integers(0, len(running) - 1)))
            cells.unpin(ids)
            retained.append(ids)
        elif action == "evict" and retained:
            cells.release(retained.pop(data.draw(st.integers(0, len(retained) - 1))))
        elif action == "revive" and retained:
            ids = retained.pop(data.draw(st.integers(0, len(retained) - 1)))
            cells.pin(ids)
            running.append(ids)
        held = {int(i) for ids in [*running, *retained] for i in ids}
        pinned = {int(i) for ids in running for i in ids}
        assert cells.free == 16 - len(held)
        assert cells.running == len(pinned)
        assert cells.retained == len(held) - len(pinned)
