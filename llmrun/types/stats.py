"""What a loaded model's process says of its work, a few times a second while it works."""

from __future__ import annotations

import msgspec


class Stats(msgspec.Struct, frozen=True, kw_only=True, tag="stats"):
    """Sent after a change. What is not said to be "of late" is as it is now, or grows for the process's life.

    running, waiting, swapped   sequences; swapped ones lie in host memory and go on when there is room
    kv_used, kv_retained        cells of `kv_total` held by running sequences, and kept for later prompts
    kv_ram_bytes, kv_disk_bytes prefixes that left the cells
    hits_cells, _ram, _disk     prompts that began with a prefix from there
    prompt_tokens               of prompts begun; `cached_tokens` of them not computed; `prefilled`: computed
    completion_tokens           made; `drafted` and `accepted` as in Usage
    steps, busy_seconds         of decoding; `decode_steps` of them brought `decode_rows` answers forward
    preemptions, cancelled      sequences swapped out, requests cancelled
    threads                     that compute a decoding step
    decode_tps, prefill_tps     tokens a second of the steps of late, over all sequences
    occupancy                   answers in a decoding step, of late, as a share of those that may run together
    itl_*_ms                    percentiles of the time between tokens, of late; the longest of all
    """

    running: int = 0
    waiting: int = 0
    swapped: int = 0
    kv_used: int = 0
    kv_retained: int = 0
    kv_total: int = 0
    kv_ram_bytes: int = 0
    kv_disk_bytes: int = 0
    hits_cells: int = 0
    hits_ram: int = 0
    hits_disk: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    prefilled: int = 0
    completion_tokens: int = 0
    drafted: int = 0
    accepted: int = 0
    steps: int = 0
    decode_steps: int = 0
    decode_rows: int = 0
    busy_seconds: float = 0.0
    preemptions: int = 0
    cancelled: int = 0
    threads: int = 0
    decode_tps: float = 0.0
    prefill_tps: float = 0.0
    occupancy: float = 0.0
    itl_p50_ms: float = 0.0
    itl_p95_ms: float = 0.0
    itl_p99_ms: float = 0.0
    itl_max_ms: float = 0.0
