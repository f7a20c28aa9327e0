"""What is known of one request when it is done: plain data, as `--json` prints it. Times in milliseconds."""

from __future__ import annotations

from typing import Any

import msgspec


class PromptPiece(msgspec.Struct, frozen=True):
    """A token of the prompt; cached: its KV was there already."""

    id: int
    text: str
    cached: bool


class Prefilled(msgspec.Struct, frozen=True):
    """Prompt tokens that were done `ms` after the first of them was begun."""

    ms: float
    processed: int


class Choice(msgspec.Struct, frozen=True):
    """A token and its probability."""

    id: int
    text: str
    probability: float


class Sampled(msgspec.Struct, frozen=True):
    """The candidates after one sampler: how many are `left`, the likeliest of them, and the `probability` of
    the token that was chosen in the end."""

    name: str
    left: int
    probability: float
    candidates: tuple[Choice, ...]


class Decoded(msgspec.Struct, frozen=True):
    """A token of the answer, beside the likeliest ones, before any sampler and after each; a forced one went
    through none. It came `ms` after the request was sent and `gap_ms` after the token before; None for the
    first, and for one that came in the same part as the one before."""

    id: int
    text: str
    probability: float
    ms: float
    gap_ms: float | None
    candidates: tuple[Choice, ...]
    samplers: tuple[Sampled, ...]


class KV(msgspec.Struct, frozen=True):
    """Bytes of the KV cache. per_token: over all layers that keep one."""

    type: str
    layers: int
    per_token: int
    prompt: int
    answer: int


class Batch(msgspec.Struct, frozen=True):
    """What shared the steps with the request, as it was when its first token came; `places` there are."""

    places: int
    running: int
    waiting: int
    cells_used: int
    cells: int


class Explained(msgspec.Struct, frozen=True):
    """Times in milliseconds; settings are those of the samplers, in llama-server's names."""

    model: str
    rendered: str
    prompt: tuple[PromptPiece, ...]
    cached: int
    prefill: tuple[Prefilled, ...]
    steps: tuple[Decoded, ...]
    answer: str
    stopped_by: str
    queue_ms: float
    prefill_ms: float
    ttft_ms: float
    decode_ms: float
    itl_ms: dict[str, float | None]
    settings: dict[str, Any]
    kv: KV
    batch: Batch | None
