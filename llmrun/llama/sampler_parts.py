"""Which native samplers a request's params ask for, in llama.cpp's order."""

from __future__ import annotations

import ctypes
import math
from typing import NamedTuple

from llmrun.llama.library import lib
from llmrun.llama.vocab import Vocab
from llmrun.types import SamplerName, SamplingParams

_MOST_BIAS = 1e6
_INFILLED = 256
"""Candidates of the infill sampler, which compares each with each: more would not be likely anyway."""


def remembers(params: SamplingParams) -> bool:
    """Whether what stands before the answer changes how its tokens are chosen."""
    return _penalises(params) or _dry(params)


def _penalises(params: SamplingParams) -> bool:
    strengths = (params.repeat_penalty - 1.0, params.presence_penalty, params.frequency_penalty)
    return "penalties" in params.samplers and params.repeat_last_n != 0 and any(strengths)


def _dry(params: SamplingParams) -> bool:
    return "dry" in params.samplers and params.dry_multiplier > 0 and params.dry_penalty_last_n != 0


class Parts(NamedTuple):
    """The `native` samplers of a chain.

    reach   only the so many likeliest tokens can be chosen, once biases are counted in; None: any can
    biases  what is added to logits of single tokens, before all else
    """

    native: list[ctypes.c_void_p]
    reach: int | None
    biases: dict[int, float]


def parts_of(vocab: Vocab, params: SamplingParams, seed: int, ctx: int) -> Parts:
    """The order is that of common_sampler_init in llama.cpp; parts that would do nothing are left out, for
    each looks at all candidates. `seed` is 32 bits."""
    biases = {**params.logit_bias, **dict.fromkeys(vocab.suppressed, -math.inf)}
    first = [_logit_bias(vocab, biases)] if biases else []
    named = _named(vocab, params, seed, ctx)
    reach = {"greedy": 1, "top_k": params.top_k}.get(named[0][0])
    return Parts([*first, *(part for _, part in named)], reach, biases)


def _named(vocab: Vocab, params: SamplingParams, seed: int, ctx: int) -> list[tuple[str, ctypes.c_void_p]]:
    """The parts behind the biases, with their names."""
    if params.mirostat:
        return [("mirostat", part) for part in _mirostat(vocab, params, seed)]
    named: list[tuple[str, ctypes.c_void_p]] = []
    greedy = params.temperature <= 0 and params.dynatemp_range <= 0
    for name in params.samplers:
        # Without randomness only what changes the order of the likeliest tokens matters.
        if greedy and name not in ("penalties", "dry", "xtc", "infill"):
            continue
        if name == "infill":
            named.append(("cut", lib.llama_sampler_init_top_k(_INFILLED)))
        if part := _sampler(name, vocab, params, seed, ctx):
            named.append((name, part))
    if greedy:
        return [*named, ("greedy", lib.llama_sampler_init_greedy())]
    if "adaptive_p" in params.samplers:
        last = lib.llama_sampler_init_adaptive_p(params.adaptive_target, params.adaptive_decay, seed)
    else:
        last = lib.llama_sampler_init_dist(seed)
    return [*named, ("last", last)]


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
    # llama.cpp sorts by integers in places, which a logit beyond some 3e8 overflows.
    pairs = [
        lib.llama_logit_bias(token, value if value == -math.inf else min(max(value, -_MOST_BIAS), _MOST_BIAS))
        for token, value in biases.items()
    ]
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
