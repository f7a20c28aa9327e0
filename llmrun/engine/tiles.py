"""How much attention a step computes where flash attention takes its rows in tiles. Pure.

ggml on a CPU (`ggml_compute_forward_flash_attn_ext_f16` in ggml-cpu/ops.cpp) deals the rows of all heads out
in pieces, four to a thread, and computes each in tiles of up to `TILE` rows of one head. A tile of fewer rows
takes as long as a full one: 67 rows of a prompt cost what 128 would, and 64 rows of 9 heads on two threads
are 16 tiles instead of 9. Steps of fewer rows than a tile compute them one by one, each about eight times as
dear.
"""

from __future__ import annotations

import functools

TILE = 64  # GGML_FA_TILE_Q
_PIECES = 4  # that each thread gets


@functools.lru_cache(maxsize=1024)
def tiled_rows(rows: int, heads: int, threads: int) -> float:
    """The rows' worth of attention of a step of `rows` rows. Of fewer than `TILE` it is that of a tile, less
    than they cost: such are a prompt's last rows, and budgets are made of whole tiles."""
    total = rows * heads
    size = -(-total // (_PIECES * threads))
    pieces = -(-total // size)
    if threads == 1 or pieces < threads:
        pieces = threads
    piece = -(-total // pieces)
    tiles = 0
    for start in range(0, total, piece):
        at, end = start, min(start + piece, total)
        while at < end:
            at += min(TILE, end - at, rows - at % rows)
            tiles += 1
    return tiles * TILE / heads
