"""Owner of a native sampler chain: from a row's logits to the next token of one sequence."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from llmrun.llama.context import Context
from llmrun.llama.library import lib
from llmrun.llama.vocab import Vocab
from llmrun.types import SamplerName, SamplerStage, SamplingParams

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
        self._candidates = np.empty(0, CANDIDATE)
        for sampler in _samplers(vocab, params, seed, ctx):
            lib.llama_sampler_chain_add(self._chain, sampler)
        if _remembers(params):
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
            self._candidates = np.empty(len(logits), CANDIDATE)
        candidates = self._candidates[: len(tokens)]
        candidates["id"] = tokens
        np.take(logits, tokens, out=candidates["logit"], mode="clip")
        array = lib.llama_token_data_array(
            data=ctypes.cast(candidates.ctypes.data, lib.llama_token_data_p),
            size=len(tokens),
            selected=-1,
            sorted=False,
        )
        self._apply(array)
        token = int(array.data[array.selected].id)  # samplers may move `data` on
        self.accept(token)
        return token

    def _apply(self, array: ctypes.Structure) -> None:
        """Have all samplers change the candidates in turn; the last selects one."""
        lib.llama_sampler_apply(self._chain, ctypes.byref(array))

    def accept(self, token: int) -> None:
        """A token that was not sampled became part of the answer; penalties count it."""
        lib.llama_sampler_accept(self._chain, token)

    def close(self) -> None:
        """Free the chain. Harmless when called again."""
        if self._chain is not None:
            lib.llama_sampler_free(self._chain)
            self._chain = None


def _remembers(params: SamplingParams) -> bool:
    """Whether what stands before the answer changes how its tokens are chosen."""
    return _penalises(params) or _dry(params)


def _penalises(params: SamplingParams) -> bool:
    strengths = (params.repeat_penalty - 1.0, params.presence_penalty, params.frequency_penalty)
    return "penalties" in params.samplers and params.repeat_last_n != 0 and any(strengths)


def _dry(params: SamplingParams) -> bool:
    return "dry" in params.samplers and params.dry_multiplier > 0 and params.dry_penalty_last_n != 0


def _samplers(vocab: Vocab, params: SamplingParams, seed: int, ctx: int) -> list[ctypes.c_void_p]:
    """The chain's parts. The order is that of common_sampler_init in llama.cpp; parts that would do
    nothing are left out, for each looks at the whole vocabulary."""
    biases = {**params.logit_bias, **dict.fromkeys(vocab.suppressed, -math.inf)}
    parts = [_logit_bias(vocab, biases)] if biases else []
    if params.mirostat:
        return [*parts, *_mirostat(vocab, params, seed)]
    greedy = params.temperature <= 0 and params.dynatemp_range <= 0
    for name in params.samplers:
        # Without randomness only what changes the order of the likeliest tokens matters.
        if greedy and name not in ("penalties", "dry", "xtc", "infill"):
            continue
        if part := _sampler(name, vocab, params, seed, ctx):
            parts.append(part)
    if greedy:
        return [*parts, lib.llama_sampler_init_greedy()]
    if "adaptive_p" in params.samplers:
        last = lib.llama_sampler_init_adaptive_p(params.adaptive_target, params.adaptive_decay, seed)
    else:
        last = lib.llama_sampler_init_dist(seed)
    return [*parts, last]


def _sampler(
    name: SamplerName, vocab: Vocab, params: SamplingParams, seed: int, ctx: int
) -> ctypes.c_void_p | None:
    """The sampler of that name; None where it would do nothing."""
    keep = max(params.min_keep, 1)
    part: ctypes.c_void_p | None = None
    match name:
        case "penalties" if _penalises(params):
            part = lib.llama_sampler_init_penalties(
                vocab.size,
                _window(params.repeat_last_n, ctx),
                params.repeat_penalty,
                params.frequency_penalty,
                params.presence_penalty,
            )
        case "dry" if _dry(params):
            part = _dry_sampler(vocab, params, ctx)
        case "top_n_sigma" if params.top_n_sigma > 0:
            part = lib.llama_sampler_init_top_n_sigma(params.top_n_sigma)
        case "top_k" if params.top_k > 0:
            part = lib.llama_sampler_init_top_k(params.top_k)
        case "typ_p" if params.typical_p < 1:
            part = lib.llama_sampler_init_typical(params.typical_p, keep)
        case "top_p" if params.top_p < 1:
            part = lib.llama_sampler_init_top_p(params.top_p, keep)
        case "min_p" if params.min_p > 0:
            part = lib.llama_sampler_init_min_p(params.min_p, keep)
        case "xtc" if params.xtc_probability > 0 and params.xtc_threshold <= 0.5:
            part = lib.llama_sampler_init_xtc(params.xtc_probability, params.xtc_threshold, keep, seed)
        case "temperature":
            part = lib.llama_sampler_init_temp_ext(
                params.temperature, params.dynatemp_range, params.dynatemp_exponent
            )
        case "infill":
            part = lib.llama_sampler_init_infill(vocab.pointer)
    return part


def _window(last_n: int, ctx: int) -> int:
    """llama.cpp keeps a ring of so many tokens, whatever the number: a huge one eats the memory."""
    return ctx if last_n < 0 else min(last_n, ctx)


def _logit_bias(vocab: Vocab, biases: dict[int, float]) -> ctypes.c_void_p:
    pairs = [lib.llama_logit_bias(token, value) for token, value in biases.items()]
    native = (lib.llama_logit_bias * len(pairs))(*pairs)
    made: ctypes.c_void_p = lib.llama_sampler_init_logit_bias(vocab.size, len(pairs), native)
    return made


def _dry_sampler(vocab: Vocab, params: SamplingParams, ctx: int) -> ctypes.c_void_p:
    breakers = [text.encode("utf-8", "replace") for text in params.dry_sequence_breakers]
    made: ctypes.c_void_p = lib.llama_sampler_init_dry(
        vocab.pointer,
        params.dry_multiplier,
        params.dry_base,
        params.dry_allowed_length,
        _window(params.dry_penalty_last_n, ctx),
        (ctypes.c_char_p * len(breakers))(*breakers),
        len(breakers),
    )
    return made


def _mirostat(vocab: Vocab, params: SamplingParams, seed: int) -> list[ctypes.c_void_p]:
    """In place of all other samplers but the temperature, as in llama.cpp (m = 100 there too)."""
    tau, eta = params.mirostat_tau, params.mirostat_eta
    temperature = lib.llama_sampler_init_temp(params.temperature)
    if params.mirostat == 1:
        return [temperature, lib.llama_sampler_init_mirostat(vocab.size, seed, tau, eta, 100)]
    return [temperature, lib.llama_sampler_init_mirostat_v2(seed, tau, eta)]
