from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmrun.engine.tiles import TILE, tiled_rows


@pytest.mark.parametrize(
    ("rows", "heads", "threads", "tiles"),
    [
        (64, 9, 1, 9),  # one piece: each head's rows are one tile
        (67, 9, 1, 18),  # three rows more are a tile more
        (64, 32, 2, 32),  # eight pieces of four whole heads
        (64, 9, 2, 16),  # eight pieces of 72 rows: a head and the beginning or the end of others
        (512, 9, 2, 72),  # eight pieces of nine whole tiles
    ],
)
def test_tiled_rows_count_each_piece_and_each_head_by_whole_tiles(
    rows: int, heads: int, threads: int, tiles: int
) -> None:
    assert tiled_rows(rows, heads, threads) == tiles * TILE / heads


@given(st.integers(TILE, 600), st.integers(1, 64), st.integers(1, 16))
def test_tiled_rows_are_never_fewer_than_the_rows(rows: int, heads: int, threads: int) -> None:
    assert rows <= tiled_rows(rows, heads, threads) * (1 + 1e-9)
