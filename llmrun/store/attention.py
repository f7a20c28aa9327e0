"""Whether a model computes attention in one pass (flash attention), and else how many rows at once. Pure.

In one pass the scores of a row are used up as they come; else those of all rows are kept, and in exchange
the fast matrix kernels compute them. On a CPU that makes steps of answers behind long texts take half of
the time or less, and prompts some more (scripts/bench/attention.py; docs/performance.md has the table). In a
cache that sequences share, prompts then look over all cells in use, not only their own, and sums over cells
are rounded by where these lie (in one pass that begins behind 512 cells). So `auto` is llama.cpp's choice on
a GPU and in a shared cache; with a cache for each sequence it is not one pass, as far as that is possible:

- llama.cpp reads a quantised V cache in one pass only
- scores take `SCORE` bytes for each row, cell and head. Where those of a batch over the whole context would
  take more than `ROOM`, and more than half of the weights or of the KV cache, fewer rows are computed at
  once; where that leaves fewer than `LEAST_ROWS`, prompts would suffer, and one pass it is

Nothing but the model, its context as asked for and the settings decides, so that a model's logits and its
saved KV are the same from one start to the next: without flash attention V lies transposed.
"""

from __future__ import annotations

from typing import NamedTuple

from llmrun.store.anatomy import Anatomy, cells

BATCH = 512
UNQUANTISED = ("f32", "f16", "bf16")
SCORE = 6  # an F32, and its F16 for the product with V
ROOM = 128 << 20
LEAST_ROWS = 64


class Attention(NamedTuple):
    """flash: None leaves it to llama.cpp. rows: computed at once."""

    flash: bool | None
    rows: int


def attention(model: Anatomy, wanted: str, ctx: int, kv_type: str, *, gpu: bool, unified: bool) -> Attention:
    """`wanted` is one of `llmrun.config.FLASH_ATTENTION`; `ctx`: tokens that were asked for, or those that
    the model was trained for; `gpu`: whether one may have part of the model; `unified`: sequences share
    a KV cache."""
    if kv_type not in UNQUANTISED or wanted == "on":
        return Attention(True, BATCH)
    if wanted == "auto" and (gpu or unified):
        return Attention(None, BATCH)
    room = max(ROOM, model.weights // 2, model.kv_bytes(ctx, kv_type) // 2)
    affordable = room // scores(model, 1, ctx)
    if wanted == "auto" and affordable < LEAST_ROWS:
        return Attention(None, BATCH)
    return Attention(False, min(BATCH, max(LEAST_ROWS, affordable)))


def scores(model: Anatomy, rows: int, ctx: int) -> int:
    """Bytes of the scores that `rows` rows have over a context of `ctx` tokens."""
    return rows * cells(ctx) * model.heads * SCORE
