"""Owner of a native sampler chain: from a row's logits to the next token of one sequence."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from llmrun.llama.library import lib
from llmrun.llama.sampler_parts import parts_of, remembers
from llmrun.llama.shortlist import shortlist
from llmrun.llama.vocab import Vocab
from llmrun.types import SamplerStage, SamplingParams

# struct llama_token_data in llama.h
CANDIDATE = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])


class SamplerChain:
    """The samplers that `params` ask for, in llama.cpp's order, with their state (penalties, RNG).

    `seed` is 32 bits. `history` are the tokens before the first sampled one: penalties count them,
    as far back as `ctx` tokens. `stages`: nothing; `llmrun.llama.traced_sampler` has a chain that fills it.
    """

    stages: tuple[SamplerStage, ...] = ()

    def __init__(
        self, vocab: Vocab, params: SamplingParams, *, seed: int, ctx: int, history: Iterable[int] = ()
    ) -> None:
        chain_params = lib.llama_sampler_chain_default_params()
        self._chain: ctypes.c_void_p | None = lib.llama_sampler_chain_init(chain_params)
        self._candidates = self._tokens = np.empty(0, CANDIDATE)
        self._array = lib.llama_token_data_array()
        self._data: Any  # a pointer, which the bindings' types take for an array
        parts = parts_of(vocab, params, seed, ctx)
        for sampler in parts.native:
            lib.llama_sampler_chain_add(self._chain, sampler)
        # A token with a bias may fall out of the likeliest, or rise into them.
        self._reach = parts.reach and parts.reach + len(parts.biases)
        self._raised = np.array([token for token, bias in parts.biases.items() if bias > 0], np.intp)
        if remembers(params):
            for token in history:
                lib.llama_sampler_accept(self._chain, token)

    def pick(self, logits: npt.NDArray[np.float32]) -> int:
        """The next token by a row of `logits` [vocab], none of them NaN. Penalties count it once it is
        accepted; a random draw is made."""
        tokens = shortlist(logits, self._reach) if self._reach else None
        if tokens is None:
            return self._choose(self._all(logits))
        if len(self._raised):
            tokens = np.union1d(tokens, self._raised)
        return self._choose(self._some(tokens, logits))

    def pick_among(self, tokens: npt.NDArray[np.intp], logits: npt.NDArray[np.float32]) -> int:
        """As `pick`, out of `tokens`, at least one.

        The chain is given these candidates alone. With minus infinity for the others, typical sampling
        computes 0 × ∞, and each sampler would look at the whole vocabulary.
        """
        if self._reach and not len(self._raised):
            best = shortlist(logits[tokens], self._reach)
            tokens = tokens if best is None else tokens[best]
        return self._choose(self._some(tokens, logits))

    def _all(self, logits: npt.NDArray[np.float32]) -> npt.NDArray[np.void]:
        """Every token as a candidate."""
        if len(self._tokens) < len(logits):
            self._tokens = np.zeros(len(logits), CANDIDATE)
            self._tokens["id"] = np.arange(len(logits))
        candidates = self._room(len(logits), logits)
        # Samplers have changed their order. As bytes it takes a tenth of the time that records take.
        candidates.view(np.uint8)[:] = self._tokens.view(np.uint8)
        candidates["logit"] = logits
        return candidates

    def _some(self, tokens: npt.NDArray[np.intp], logits: npt.NDArray[np.float32]) -> npt.NDArray[np.void]:
        """These tokens as candidates."""
        candidates = self._room(len(tokens), logits)
        candidates["id"] = tokens
        np.take(logits, tokens, out=candidates["logit"], mode="clip")
        return candidates

    def _room(self, count: int, logits: npt.NDArray[np.float32]) -> npt.NDArray[np.void]:
        if len(self._candidates) < count:  # kept: fresh memory of this size costs more than its use
            self._candidates = np.empty(len(logits), CANDIDATE)
            self._data = ctypes.cast(self._candidates.ctypes.data, lib.llama_token_data_p)
        return self._candidates[:count]

    def _choose(self, candidates: npt.NDArray[np.void]) -> int:
        """One of these, which are the first of `_candidates`."""
        array = self._array
        array.data, array.size, array.selected, array.sorted = self._data, len(candidates), -1, False
        self._apply(array)
        return int(array.data[array.selected].id)  # samplers may move `data` on

    def _apply(self, array: ctypes.Structure) -> None:
        """Have all samplers change the candidates in turn; the last selects one."""
        lib.llama_sampler_apply(self._chain, ctypes.byref(array))

    def accept(self, token: int) -> None:
        """A token became part of the answer; penalties count it."""
        lib.llama_sampler_accept(self._chain, token)

    def close(self) -> None:
        """Free the chain. Harmless when called again."""
        if self._chain is not None:
            lib.llama_sampler_free(self._chain)
            self._chain = None
