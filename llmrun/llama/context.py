"""Owner of a context: the KV cache of all sequences and the buffers of one decode at a time."""

from __future__ import annotations

import ctypes
import enum
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from llmrun.errors import NO_MEMORY, LlmrunError
from llmrun.llama.abort import AbortFlag
from llmrun.llama.adapter import Adapter, apply_adapters, native_adapters
from llmrun.llama.batch import Batch
from llmrun.llama.library import lib, take_error
from llmrun.llama.model import Model

# enum ggml_type in ggml.h, as far as llama.cpp takes them for the KV cache
_GGML_TYPES = {
    "f32": 0,
    "f16": 1,
    "q4_0": 2,
    "q4_1": 3,
    "q5_0": 6,
    "q5_1": 7,
    "q8_0": 8,
    "iq4_nl": 20,
    "bf16": 30,
}
UNQUANTISED = ("f32", "f16", "bf16")


class DecodeStatus(enum.Enum):
    """What llama_decode returned, as data. After ABORTED and FATAL part of the batch may be in memory."""

    OK = 0
    NO_SLOT = 1
    ABORTED = 2
    INVALID = -1
    FATAL = -2


@dataclass(frozen=True)
class ContextSettings:
    """ctx: tokens a sequence may have. batch: rows a decode may have. slots: sequences that may hold cells.
    threads: for steps of a row or so; threads_batch: for larger ones. kv_type: of K and V. unified: all
    sequences share `ctx` cells; else each has as many. flash_attention: None leaves it to llama.cpp.
    at_once: rows that are computed together, where fewer than `batch`."""

    ctx: int
    batch: int
    slots: int
    threads: int
    threads_batch: int
    kv_type: str = "f16"
    unified: bool = True
    flash_attention: bool | None = None
    at_once: int | None = None


class Context:
    """One KV cache over a model. All calls from one thread, except those of `abort`.

    Sequences are named by slots (llama.cpp's sequence ids), 0 to `slots - 1`. In a unified context they share
    one buffer of cells, so that a common prefix is stored once. Else each slot has a buffer, and rows should
    come in the order of their slots: what is not next to each other is computed one after the other.
    `adapters` are those that `use_adapters` chooses among.
    """

    def __init__(self, model: Model, settings: ContextSettings, adapters: Sequence[Adapter] = ()) -> None:
        params = lib.llama_context_default_params()
        params.n_ctx = settings.ctx if settings.unified else settings.ctx * settings.slots
        params.n_batch = max(settings.batch, settings.slots)  # llama.cpp aborts where it has fewer rows
        params.n_ubatch = min(settings.batch, settings.at_once or settings.batch)
        params.n_seq_max = settings.slots
        params.n_threads = settings.threads
        params.n_threads_batch = settings.threads_batch
        params.type_k = params.type_v = _GGML_TYPES[settings.kv_type]
        # A quantised V cache cannot be read without flash attention. Elsewhere llama.cpp takes it where it
        # can. With or without it, sums over the cells are taken in an order that depends on where they lie
        # and on how many rows a step has; where activations are quantised to 8 bits, that moves logits by
        # some 0.1 from 512 cells on.
        if settings.kv_type not in UNQUANTISED:
            params.flash_attn_type = 1
        elif settings.flash_attention is not None:
            params.flash_attn_type = int(settings.flash_attention)
        params.kv_unified = settings.unified
        params.swa_full = True  # windowed layers have as many cells as others: see `Model.sliding_window`

        self.abort = AbortFlag()
        self.abort.install(params)
        take_error()
        self._pointer: ctypes.c_void_p | None = lib.llama_init_from_model(model.pointer, params)
        if not self._pointer:
            raise LlmrunError(
                NO_MEMORY,
                f"llama.cpp cannot make a context of {settings.ctx} tokens ({settings.kv_type} KV cache):"
                f" {take_error()}",
                hint="use a smaller --ctx or another LLMRUN_KV_TYPE",
            )
        model.adopt(self)
        self.model = model
        self.slots = settings.slots
        self.unified = settings.unified
        self.threads = settings.threads
        """For steps of a row or so, until `use_threads`."""
        self._threads: int | None = None  # as the settings say
        self._row = ctypes.c_float * model.vocab.size
        self._logits: dict[int, npt.NDArray[np.float32]] = {}  # by address: llama.cpp reuses its rows
        self._memory = lib.llama_get_memory(self._pointer)
        self._adapters = native_adapters(adapters)
        self._scales: tuple[float, ...] = (0.0,) * len(adapters)

    @property
    def pointer(self) -> ctypes.c_void_p:
        """The native context, for the other owners of this package."""
        if self._pointer is None:
            raise ValueError("the context is closed")
        return self._pointer

    def close(self) -> None:
        """Free the context. Harmless when called again."""
        if self._pointer is not None:
            lib.llama_free(self._pointer)
            self._pointer = None
            self.abort.clear()

    @property
    def ctx(self) -> int:
        """Tokens that one sequence may have; llama.cpp may round up what was asked for."""
        return int(lib.llama_n_ctx_seq(self.pointer))

    @property
    def cells(self) -> int:
        """KV cells of all sequences."""
        return int(lib.llama_n_ctx(self.pointer))

    def use_adapters(self, scales: tuple[float, ...]) -> None:
        """Let the adapters count so much from the next decode on; 0 is not at all, as at first."""
        if scales == self._scales:
            return
        count = len(self._adapters)
        if len(scales) != count:
            raise ValueError(f"{len(scales)} scales for {count} adapters")
        apply_adapters(self.pointer, self._adapters, scales)
        self._scales = scales

    def use_threads(self, count: int) -> None:
        """Let so many threads compute from the next decode on, whatever its rows.

        Over 512 cells or more a step of one row
        adds up in another order then (ggml's `flash_attn_ext` splits the cells among the threads)."""
        if count != self._threads:
            lib.llama_set_n_threads(self.pointer, count, count)
            self._threads = count

    def decode(self, batch: Batch) -> DecodeStatus:
        """Compute the batch. Afterwards the logits of its output rows are readable."""
        code = int(lib.llama_decode(self.pointer, batch.native))
        return DecodeStatus(max(code, -2))

    def logits(self, row: int) -> npt.NDArray[np.float32]:
        """A view of an output row's logits, shape [vocab]; valid until the next decode."""
        at = ctypes.addressof(lib.llama_get_logits_ith(self.pointer, row).contents)
        view = self._logits.get(at)
        if view is None:
            view = self._logits[at] = np.ctypeslib.as_array(self._row.from_address(at))
        return view

    # --- memory of sequences: no arithmetic is done; only `restore`, and `share` of a copy, write cells

    def clear(self) -> None:
        """Forget all sequences, and overwrite what they stored by zeros."""
        lib.llama_memory_clear(self._memory, True)

    def drop(self, slot: int) -> None:
        """Forget a sequence; cells no other shares become free."""
        lib.llama_memory_seq_rm(self._memory, slot, -1, -1)

    def trim(self, slot: int, length: int) -> bool:
        """Forget a sequence from position `length` on. False where the memory cannot be cut there."""
        return bool(lib.llama_memory_seq_rm(self._memory, slot, length, -1))

    def share(self, source: int, target: int, length: int) -> None:
        """Let the empty slot `target` begin with the first `length` tokens of `source`: with its cells, or,
        where each slot has its own, with a copy. llama.cpp's own way would copy a slot's whole buffer, and
        only at the next decode, when the source may be another's."""
        if self.unified:
            lib.llama_memory_seq_cp(self._memory, source, target, 0, length)
        elif not (self.restore(target, self.save(source)) and self.trim(target, length)):
            raise RuntimeError(f"llama.cpp cannot copy slot {source} to slot {target}")

    def length(self, slot: int) -> int:
        """Tokens of a sequence in memory."""
        return int(lib.llama_memory_seq_pos_max(self._memory, slot)) + 1

    def save(self, slot: int) -> memoryview:
        """The sequence's memory, to be restored into any slot of this context. Nothing else writes to it."""
        size = int(lib.llama_state_seq_get_size(self.pointer, slot))
        buffer = np.empty(size, np.uint8)
        written = int(lib.llama_state_seq_get_data(self.pointer, _place(buffer), size, slot))
        return buffer.data[:written]

    def restore(self, slot: int, state: bytes | memoryview) -> bool:
        """Put a saved sequence into an empty slot. False where it does not fit."""
        source = np.frombuffer(state, np.uint8)
        return bool(lib.llama_state_seq_set_data(self.pointer, _place(source), len(state), slot))


def _place(data: npt.NDArray[np.uint8]) -> object:
    """Where `data` lies, for as long as the pointer is held. ctypes' own `cast` would keep what it is given
    in a reference cycle, megabytes that stay until the garbage collector comes by."""
    return data.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
