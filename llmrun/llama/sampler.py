"""Owner of a native sampler chain: from a row's logits to the next token of one sequence."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from llmrun.llama.context import Context
from llmrun.llama.library import lib
from llmrun.llama.vocab import Vocab
from llmrun.types import SamplingParams

# struct llama_token_data in llama.h
_CANDIDATE = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])


class SamplerChain:
    """The samplers that `params` ask for, in llama.cpp's order, with their state (penalties, RNG).

    `seed` is 32 bits. `history` are the tokens before the first sampled one: penalties count them,
    as far back as `ctx` tokens.
    """

    def __init__(
        self, vocab: Vocab, params: SamplingParams, *, seed: int, ctx: int, history: Iterable[int] = ()
    ) -> None:
        chain_params = lib.llama_sampler_chain_default_params()
        self._chain: ctypes.c_void_p | None = lib.llama_sampler_chain_init(chain_params)
        self._candidates = np.empty(0, _CANDIDATE)
        for sampler in _samplers(vocab, params, seed, ctx):
            lib.llama_sampler_chain_add(self._chain, sampler)
        if _penalises(params):
            for token in history:
                lib.llama_sampler_accept(self._chain, token)

    def sample(self, context: Context, row: int) -> int:
        """The next token after an output row; the chain's state moves on by it."""
        return int(lib.llama_sampler_sample(self._chain, context.pointer, row))

    def sample_among(self, tokens: npt.NDArray[np.intp], logits: npt.NDArray[np.float32]) -> int:
        """The next token out of `tokens`, by their entries in `logits` [vocab]; the state moves on by it.

        The chain is given these candidates alone. With minus infinity for the others, typical sampling
        computes 0 × ∞, and each sampler would look at the whole vocabulary.
        """
        if len(self._candidates) < len(tokens):  # kept: fresh memory of this size costs more than its use
            self._candidates = np.empty(len(logits), _CANDIDATE)
        candidates = self._candidates[: len(tokens)]
        candidates["id"] = tokens
        np.take(logits, tokens, out=candidates["logit"], mode="clip")
        array = lib.llama_token_data_array(
            data=ctypes.cast(candidates.ctypes.data, lib.llama_token_data_p),
            size=len(tokens),
            selected=-1,
            sorted=False,
        )
        lib.llama_sampler_apply(self._chain, ctypes.byref(array))
        token = int(candidates["id"][array.selected])
        self.accept(token)
        return token

    def accept(self, token: int) -> None:
        """A token that was not sampled became part of the answer; penalties count it."""
        lib.llama_sampler_accept(self._chain, token)

    def close(self) -> None:
        """Free the chain. Harmless when called again."""
        if self._chain is not None:
            lib.llama_sampler_free(self._chain)
            self._chain = None


def _penalises(params: SamplingParams) -> bool:
    strengths = (params.repeat_penalty - 1.0, params.presence_penalty, params.frequency_penalty)
    return params.repeat_last_n != 0 and any(strengths)


def _samplers(vocab: Vocab, params: SamplingParams, seed: int, ctx: int) -> list[ctypes.c_void_p]:
    """The chain's parts. The order is that of common_sampler_init in llama.cpp; parts that would do
    nothing are left out, for each looks at the whole vocabulary."""
    parts = []
    if params.logit_bias:
        pairs = [lib.llama_logit_bias(token, value) for token, value in params.logit_bias.items()]
        bias = (lib.llama_logit_bias * len(pairs))(*pairs)
        parts.append(lib.llama_sampler_init_logit_bias(vocab.size, len(bias), bias))
    if _penalises(params):
        # llama.cpp keeps a ring of this many tokens, whatever the number: a huge one eats the memory
        last_n = ctx if params.repeat_last_n < 0 else min(params.repeat_last_n, ctx)
        parts.append(
            lib.llama_sampler_init_penalties(
                vocab.size, last_n, params.repeat_penalty, params.frequency_penalty, params.presence_penalty
            )
        )
    if params.temperature <= 0:
        return [*parts, lib.llama_sampler_init_greedy()]
    if params.top_k > 0:
        parts.append(lib.llama_sampler_init_top_k(params.top_k))
    if params.typical_p < 1:
        parts.append(lib.llama_sampler_init_typical(params.typical_p, 1))
    if params.top_p < 1:
        parts.append(lib.llama_sampler_init_top_p(params.top_p, 1))
    if params.min_p > 0:
        parts.append(lib.llama_sampler_init_min_p(params.min_p, 1))
    return [*parts, lib.llama_sampler_init_temp(params.temperature), lib.llama_sampler_init_dist(seed)]
