"""How much memory a model takes on a machine, and how quick it will be. Pure.

In: an `Anatomy`, a `Machine`, a context and a KV type. Out: a `Plan`, in bytes.

The parts, for the runner as it is (batches of `BATCH` rows, whole KV caches, mapped files):

- mapped: the file's weights, all of which llama.cpp maps and reads
- repacked: a second copy of those weights that llama.cpp rearranges for this CPU's instructions
  (`ggml-cpu/repack.cpp`); the pages of the first are not read again, so `held` counts only one of the two
- returned: mapped pages of repacked weights, save an embedding's, whose rows are looked up. A runner lets go
  of them while it loads, step by step, and once it has (`llmrun/llama/mapped.py`, on Linux)
- caches: KV and recurrent state, exact, see `anatomy`
- compute: activations of one batch, BATCH × 4 bytes × (2 × ff + 6 × embd), a row of logits for each sequence,
  the attention mask, BATCH × ctx × 6 bytes (F32 and F16), and without flash attention the scores of all heads
  (see `attention`). llama.cpp reserves room for the logits of all rows, which is never touched. For an
  encoder one batch is a whole input, and each row has its logits
- runtime: the process itself, measured with this Python and llama.cpp, and the vocabulary's tables

`peak` is what the process was measured to reach, while it loads or later; tests/real/test_plan.py holds it to
10 %.

Decoding reads the active weights and the KV of what was said, once per token: its time is their bytes over
the memory bandwidth that the kernels reach (`SHARE`, measured at a 1.2B) and a fixed cost per layer for the
threads to meet (`MEETING`, measured at the 135M, where it is half).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from llmrun.store.anatomy import CELLS, F32, Anatomy, cells, layer_kv, layer_of
from llmrun.store.attention import BATCH, attention, scores
from llmrun.store.hardware import Machine
from llmrun.store.kernels import repacks

SEQUENCES = 16  # states that a recurrent model keeps: 8 running, as many for later prompts
ANSWERING = 8  # rows of logits in one step
PROCESS = 55 << 20
PER_TOKEN_OF_VOCABULARY = 450
RELEASE_STEP = 0.1  # of the weights: so many are read before mapped pages are let go of
SHARE = 0.85
MEETING = 80e-6  # seconds
GPU_USABLE = 0.9  # of what is free
KV_SHARE = 0.5  # of the memory that the weights leave, for the KV cache without being told to


@dataclass(frozen=True)
class Company:
    """What is loaded beside a model: LoRA adapters, in bytes, and the model that drafts for it."""

    adapters: int = 0
    draft: Anatomy | None = None


ALONE = Company()


@dataclass(frozen=True)
class Plan:
    """Bytes of one model at one context: those in main memory, by part, and `gpu`, those of the last
    `gpu_layers` of `layers` (the output counts as one) with their caches. `beside`: all that its adapters and
    its draft take."""

    ctx: int
    kv_type: str
    mapped: int
    repacked: int
    returned: int
    caches: int
    compute: int
    runtime: int
    layers: int
    gpu_layers: int = 0
    gpu: int = 0
    beside: int = 0

    @property
    def peak(self) -> int:
        """The most that the process will be seen to hold in main memory. Caches come behind the weights."""
        loading = self.mapped + int(RELEASE_STEP * self.repacked)
        running = self.mapped + self.repacked - self.returned + self.caches + self.compute
        return max(loading, running) + self.runtime + self.beside

    @property
    def held(self) -> int:
        """What must fit into main memory: without pages that the system may drop at no cost."""
        return max(self.mapped, self.repacked) + self.caches + self.compute + self.runtime + self.beside

    def fits(self, machine: Machine) -> bool:
        """Whether it fits into the main memory that is available now."""
        return self.held <= machine.available


def streams(model: Anatomy, layout: str, parallel: int | None) -> int:
    """How many KV caches of a whole context a model gets: one that all sequences share, or one for each that
    may run. `layout` is one of `llmrun.config.KV_LAYOUTS`. Recurrent states lie apart in any case, and what
    attention such a model has shares its cells."""
    if layout == "unified" or any(layer.state for layer in model.layers):
        return 1
    return parallel or ANSWERING


def plan(
    model: Anatomy,
    machine: Machine,
    ctx: int,
    kv_type: str,
    company: Company = ALONE,
    streams: int = 1,
) -> Plan:
    """The memory for `ctx` tokens, with as many layers on the GPU as it has room for. `streams`: how many KV
    caches of so many tokens."""
    count = len(model.layers)
    if model.encodes:
        compute = embedding_bytes(model, ctx, last_row=False)
    else:
        way = attention(model, "auto", ctx, kv_type, gpu=machine.gpu_memory > 0, unified=streams == 1)
        compute = _activations(model, way.rows, ctx) + ANSWERING * model.vocab * F32
        if way.flash is False:
            compute += scores(model, way.rows, ctx)
    kv_cells = streams * cells(ctx)
    caches = [layer_kv(layer, kv_type) * kv_cells + F32 * layer.state * SEQUENCES for layer in model.layers]
    moving = [
        *(layer.weights + cache for layer, cache in zip(model.layers, caches, strict=True)),
        sum(tensor.size for tensor in model.tensors if layer_of(tensor.name, count) == count),
    ]
    first = _first_on_gpu(moving, int(machine.gpu_memory * GPU_USABLE) - compute)
    stays = [tensor for tensor in model.tensors if layer_of(tensor.name, count) < first]
    repacked = [tensor.size for tensor in stays if repacks(tensor, machine.features)]
    returned = sum(repacked)
    if model.tied and first > count:  # the output is a copy of the embedding
        repacked += [tensor.size for tensor in stays if repacks(tensor, machine.features, as_output=True)]
    return Plan(
        ctx=ctx,
        kv_type=kv_type,
        mapped=sum(tensor.size for tensor in stays),
        repacked=sum(repacked),
        returned=returned,
        caches=sum(caches[:first]),
        compute=compute,
        runtime=PROCESS + PER_TOKEN_OF_VOCABULARY * model.vocab,
        layers=count + 1,
        gpu_layers=count + 1 - first,
        gpu=sum(moving[first:]) + (compute if first <= count else 0),
        beside=_beside(company, machine, ctx, kv_type),
    )


def _beside(company: Company, machine: Machine, ctx: int, kv_type: str) -> int:
    """Bytes of adapters, which are copied into memory, and of a draft over as long a context."""
    if company.draft is None:
        return company.adapters
    draft = plan(company.draft, replace(machine, gpu_memory=0), ctx, kv_type)
    return company.adapters + draft.peak - PROCESS


def _activations(model: Anatomy, rows: int, ctx: int) -> int:
    """Bytes that a batch of `rows` takes over a context of `ctx`."""
    return rows * F32 * (2 * model.ff + 6 * model.embd) + rows * ctx * 6


def embedding_bytes(model: Anatomy, tokens: int, *, last_row: bool) -> int:
    """Bytes of a context that makes vectors of inputs of `tokens` tokens: their KV where the model has a
    cache, and one batch. That has `BATCH` rows where the `last_row` alone makes the vector; else it is the
    whole input, with a row of logits for each of its rows."""
    rows = min(tokens, BATCH) if last_row else tokens
    outputs = 1 if last_row else rows
    return _activations(model, rows, tokens) + outputs * model.vocab * F32 + model.kv_bytes(tokens, "f16")


def _first_on_gpu(moving: Sequence[int], room: int) -> int:
    """Where the longest tail of `moving` starts that fits into `room`: llama.cpp offloads the last layers."""
    first = len(moving)
    while first and moving[first - 1] <= room:
        first -= 1
        room -= moving[first]
    return first


def largest_context(
    model: Anatomy,
    machine: Machine,
    kv_type: str,
    most: int,
    company: Company = ALONE,
    streams: int = 1,
) -> int:
    """The most tokens up to `most` that fit, a multiple of what llama.cpp rounds to; 0 where none do."""
    low, high = 0, most // CELLS
    while low < high:
        middle = (low + high + 1) // 2
        if plan(model, machine, middle * CELLS, kv_type, company, streams).fits(machine):
            low = middle
        else:
            high = middle - 1
    return low * CELLS


def automatic_context(
    model: Anatomy, kv_type: str, most: int, memory: int, draft: Anatomy | None = None, streams: int = 1
) -> int:
    """The tokens of context where nobody names them: up to `most`, as far as KV caches take no more than
    their share of `memory`, the bytes that are free. `draft`: a model beside it, of as large a context."""
    models = [model] if draft is None else [model, draft]
    room = int(KV_SHARE * max(0, memory - sum(one.weights for one in models)))
    per_cell = kv_of_all(model, CELLS, kv_type, draft, streams) // CELLS
    return max(CELLS, min(most, room // per_cell if per_cell else most))


def kv_of_all(model: Anatomy, ctx: int, kv_type: str, draft: Anatomy | None, streams: int) -> int:
    """Bytes of a model's KV caches and of its draft's, which is one."""
    beside = 0 if draft is None else draft.kv_bytes(ctx, kv_type)
    return streams * model.kv_bytes(ctx, kv_type) + beside


def bytes_read(model: Anatomy, kv_type: str, said: int) -> int:
    """Bytes that one answer's next token reads from memory behind `said` tokens: the weights in use, and
    the KV of all that was said."""
    return model.active + sum(layer_kv(layer, kv_type) for layer in model.layers) * said


def decode_speed(model: Anatomy, machine: Machine, kv_type: str, said: int) -> float | None:
    """Tokens a second of one answer after `said` tokens, on the CPU; None where the memory's bandwidth is not
    known, a GPU has part of the model, or it writes none."""
    if machine.bandwidth is None or machine.gpu_memory or model.encodes:
        return None
    read = bytes_read(model, kv_type, said)
    return 1 / (read / (SHARE * machine.bandwidth) + MEETING * len(model.layers))
