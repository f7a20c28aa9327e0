"""Owner of a context that turns token ids into vectors, one for each sequence.

A vector does not depend on what is computed beside it. That takes care, because the kernels round differently
for batches of different shapes, and quantised activations carry a flipped last bit into the fourth digit:

- encoders (BERT and its kin, which keep no memory) take many sequences in one batch, each from a multiple of
  `ALIGN` rows on, so that its rows fall into the same tiles and lanes of the kernels as they do alone; the
  gaps are filled with a sequence that nobody reads. Flash attention, which sums across sequences' borders in
  half precision, is off where many share a batch
- models with a memory (decoders) compute one sequence at a time

With embeddings on, llama.cpp gives every row of a batch a row of logits, also in models that have none
(`llama_context::output_reserve`): `rows × vocabulary × 4` bytes. Where the last row alone makes the vector,
those before it are therefore computed without outputs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from llmrun.errors import NO_MEMORY, LlmrunError
from llmrun.llama.abort import AbortFlag
from llmrun.llama.adapter import Adapter, apply_adapters, native_adapters
from llmrun.llama.batch import Batch, Tokens
from llmrun.llama.library import lib, mute, take_error
from llmrun.llama.model import Model

Vector = npt.NDArray[np.float32]

ALIGN = 16
SHARED_ROWS = 512
"""Rows up to which sequences share a batch; a context of more is for one long sequence at a time."""
SLOTS = 32
"""Sequences that share a batch, and the one between them. llama.cpp wants rows a multiple of it."""

# enum llama_pooling_type in llama.h
_POOLING = {"mean": 1, "cls": 2, "last": 3, "rank": 4}
_NO_FLASH_ATTENTION, _FLASH_ATTENTION_WHERE_IT_CAN = 0, -1
_ABORTED = 2


class EmbeddingContext:
    """Vectors by the model's own pooling, of sequences of up to `tokens` tokens, with all `adapters` at full
    strength. All calls from one thread, except those of `abort`."""

    def __init__(self, model: Model, tokens: int, threads: int, adapters: Sequence[Adapter] = ()) -> None:
        self.tokens = tokens
        self.model = model
        self._last_row = model.pools_last_row
        shared = not model.has_memory and tokens <= SHARED_ROWS
        slots = SLOTS if shared else 1 if model.has_memory else 2
        rows = min(tokens, SHARED_ROWS) if self._last_row else round_up(tokens, max(ALIGN, slots))
        # The filler's positions go on from gap to gap, and some models know none past their training.
        self.sequences = max(1, min(slots - 1, model.ctx_train // ALIGN))
        """How many `embed` may take together."""
        self._filler_slot = slots - 1
        self.rows = rows if shared else round_up(tokens, ALIGN)
        """How many rows they may have together, each counted by `rows_of`."""
        params = lib.llama_context_default_params()
        params.n_ctx = tokens
        params.n_batch = params.n_ubatch = rows
        params.n_seq_max = slots
        params.n_threads = params.n_threads_batch = threads
        params.embeddings = True
        params.pooling_type = _POOLING[model.pooling]
        params.flash_attn_type = _NO_FLASH_ATTENTION if shared else _FLASH_ATTENTION_WHERE_IT_CAN
        params.kv_unified = True
        params.swa_full = True

        self.abort = AbortFlag()
        self.abort.install(params)
        take_error()
        mute(True)  # it warns of every pooling that the file does not name
        self._pointer = lib.llama_init_from_model(model.pointer, params)
        mute(False)
        if not self._pointer:
            raise LlmrunError(
                NO_MEMORY,
                f"llama.cpp cannot make a context for inputs of {tokens} tokens: {take_error()}",
                hint="send shorter inputs",
            )
        model.adopt(self)
        apply_adapters(self._pointer, native_adapters(adapters), (1.0,) * len(adapters))
        self._memory = lib.llama_get_memory(self._pointer)
        self._compute = lib.llama_decode if self._memory else lib.llama_encode
        self._width = len(model.classes) if model.pooling == "rank" else model.embedding_size
        self._batch = Batch(rows)
        self._filler = np.full(ALIGN, model.vocab.bos or 0, np.int32)

    def close(self) -> None:
        """Free the context. Harmless when called again."""
        if self._pointer is not None:
            lib.llama_free(self._pointer)
            self._pointer = None

    def rows_of(self, tokens: int) -> int:
        """The rows that a sequence of so many tokens takes up."""
        return tokens if self._memory else round_up(tokens, ALIGN)

    def embed(self, sequences: Sequence[Tokens]) -> list[Vector] | None:
        """A vector for each sequence, shape [embedding_size], or [classes] of a ranker; None where it was
        aborted. No sequence is empty; together they keep to `sequences` and `rows`."""
        if self._memory:
            lib.llama_memory_clear(self._memory, False)
        self._batch.clear()
        if self._last_row:
            (tokens,) = sequences
            if not self._without_outputs(tokens[:-1]):
                return None
            self._batch.add(tokens[-1:], len(tokens) - 1, 0, outputs=1)
        else:
            self._fill(sequences)
        if not self._run():
            return None
        return [self._vector(slot) for slot in range(len(sequences))]

    def _fill(self, sequences: Sequence[Tokens]) -> None:
        filled = 0
        for slot, tokens in enumerate(sequences):
            self._batch.add(tokens, 0, slot, outputs=len(tokens))
            if gap := self.rows_of(len(tokens)) - len(tokens):
                self._batch.add(self._filler[:gap], filled, self._filler_slot, outputs=gap)
                filled += gap

    def _without_outputs(self, tokens: Tokens) -> bool:
        """Compute these tokens of the one sequence for the memory alone; False where it was aborted."""
        lib.llama_set_embeddings(self._pointer, False)
        try:
            for start in range(0, len(tokens), self._batch.capacity):
                self._batch.add(tokens[start : start + self._batch.capacity], start, 0, outputs=0)
                if not self._run():
                    return False
            return True
        finally:
            lib.llama_set_embeddings(self._pointer, True)

    def _run(self) -> bool:
        """Compute the batch and empty it; False where it was aborted."""
        code = int(self._compute(self._pointer, self._batch.native))
        self._batch.clear()
        if code not in (0, _ABORTED):
            raise RuntimeError(f"llama.cpp cannot compute the vectors (code {code}): {take_error()}")
        return code == 0

    def _vector(self, slot: int) -> Vector:
        data = lib.llama_get_embeddings_seq(self._pointer, slot)
        if not data:
            raise RuntimeError("llama.cpp gave no vector")
        vector: Vector = np.ctypeslib.as_array(data, shape=(self._width,)).copy()
        return vector


def round_up(count: int, step: int) -> int:
    """The least multiple of `step` that is not below `count`."""
    return -(-count // step) * step
