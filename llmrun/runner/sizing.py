"""How much context, how many sequences and threads a model gets on this machine. Pure arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

from llmrun.config import MAX_SEQUENCES

# Bytes per number of the KV types: block size and bytes per block from ggml-common.h
_KV_BYTES = {
    "f32": 4.0,
    "f16": 2.0,
    "bf16": 2.0,
    "q8_0": 34 / 32,
    "q5_1": 24 / 32,
    "q5_0": 22 / 32,
    "q4_1": 20 / 32,
    "q4_0": 18 / 32,
    "iq4_nl": 18 / 32,
}
PARALLEL = 8
BATCH = 512
LEAST_CTX = 256
# Share of the memory that the weights leave which the KV cache may take without being told to.
_KV_SHARE = 0.5


@dataclass(frozen=True)
class Machine:
    """What there is: bytes of memory available now, cores this process may use."""

    memory: int
    cores: int


@dataclass(frozen=True)
class Sizes:
    """ctx: KV cells. slots: sequences that may hold cells, running ones and retained prefixes."""

    ctx: int
    parallel: int
    slots: int
    threads: int


def kv_bytes_per_token(layers: int, kv_width: int, kv_type: str) -> float:
    """Bytes of K and V for one token: 2 × layers × kv_width numbers, where kv_width is KV heads ×
    head size (https://arxiv.org/abs/2305.13245, grouped-query attention)."""
    return 2 * layers * kv_width * _KV_BYTES[kv_type]


def sizes(
    *,
    machine: Machine,
    weights: int,
    ctx_train: int,
    token_bytes: float,
    trimmable: bool,
    ctx: int | None,
    parallel: int | None,
    threads: int | None,
) -> Sizes:
    """The sizes in force; those given win. An automatic context is the model's own, as far as half of
    the memory beside the weights holds its KV."""
    if ctx is None:
        affordable = int(_KV_SHARE * max(0, machine.memory - weights) / token_bytes)
        ctx = max(LEAST_CTX, min(ctx_train, affordable))
    running = parallel or PARALLEL
    # A recurrent model keeps a whole state per slot, an attention model only an entry in a table.
    retained = 2 * running + 8 if trimmable else running
    return Sizes(
        ctx=ctx,
        parallel=running,
        slots=min(MAX_SEQUENCES, running + retained),
        threads=threads or machine.cores,
    )
