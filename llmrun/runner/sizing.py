"""How much context, how many sequences and threads a model gets on this machine. Pure arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

from llmrun.config import MAX_SEQUENCES
from llmrun.errors import NO_MEMORY, LlmrunError
from llmrun.runner.frames import Load
from llmrun.store.anatomy import Anatomy
from llmrun.store.plan import ANSWERING, automatic_context, kv_of_all, streams

# Kept KV prefixes, where nobody says how much: of the memory, of the free disk, and at most.
_CACHE_RAM_SHARE, _CACHE_RAM_MOST = 1 / 16, 1 << 30
_CACHE_DISK_SHARE, _CACHE_DISK_MOST = 1 / 10, 4 << 30


@dataclass(frozen=True)
class Sizes:
    """ctx: tokens that a sequence may have. slots: sequences that may hold cells, running ones and retained
    prefixes. unified: they share the cells of one context; else each slot has as many."""

    ctx: int
    parallel: int
    slots: int
    threads: int
    unified: bool = True


def sizes(
    spec: Load,
    model: Anatomy,
    *,
    ctx_train: int,
    trimmable: bool,
    memory: int,
    gpu_memory: int,
    cores: int,
    draft: Anatomy | None = None,
) -> Sizes:
    """The sizes in force; those of `spec` win. `memory`, `gpu_memory`: bytes free now; `cores`: that may
    compute; `draft`: a model beside it, whose context is as large.

    An automatic context is the model's own, as far as half of the memory beside the weights holds its KV.
    One that was asked for is refused with NO_MEMORY where its KV cannot fit: llama.cpp would try.
    """
    free = memory + gpu_memory
    caches = streams(model, spec.kv_layout, spec.parallel)
    if spec.ctx is not None and (needed := kv_of_all(model, spec.ctx, spec.kv_type, draft, caches)) > free:
        raise LlmrunError(
            NO_MEMORY,
            f"a context of {spec.ctx} tokens needs {needed / 1e9:.1f} GB for its KV cache,"
            f" but {free / 1e9:.1f} GB are free",
        )
    running = spec.parallel or ANSWERING
    # A recurrent model keeps a whole state per slot, an attention model only an entry in a table; in a layout
    # that gives each slot a KV cache, prefixes are retained in those that nobody runs in.
    retained = 2 * running + 8 if trimmable else running
    if caches > 1:
        retained = 0
    return Sizes(
        ctx=spec.ctx or automatic_context(model, spec.kv_type, ctx_train, memory, draft, caches),
        parallel=running,
        slots=min(MAX_SEQUENCES, running + retained),
        threads=spec.threads or cores,
        unified=caches == 1,
    )


def cache_bytes(spec: Load, *, memory: int, disk: int) -> tuple[int, int]:
    """Bytes of KV prefixes in host memory and on disk; `memory`: of the machine, `disk`: free, in bytes."""
    ram = min(int(_CACHE_RAM_SHARE * memory), _CACHE_RAM_MOST) if spec.cache_ram is None else spec.cache_ram
    if spec.kv_folder is None:
        return ram, 0
    if spec.cache_disk is not None:
        return ram, spec.cache_disk
    return ram, min(int(_CACHE_DISK_SHARE * disk), _CACHE_DISK_MOST)


def longest_input(asked: int | None, ctx_train: int, *, bounded: bool) -> int:
    """Tokens of the longest input of a model that makes vectors: what it was trained for, or what is asked.
    `bounded`: it knows no positions past its training, so that more cannot be had."""
    if asked is None or (bounded and asked > ctx_train):
        return ctx_train
    return asked
