"""How tokens are chosen: what may be set in each layer, and what is decided.

This is the one table of options: names, types, bounds and meanings. Modelfiles, GGUF metadata, the
command line and the dialects are checked against it. Names and meanings are llama.cpp's.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

SamplerName = Literal[
    "penalties",
    "dry",
    "top_n_sigma",
    "top_k",
    "typ_p",
    "top_p",
    "min_p",
    "xtc",
    "temperature",
    "adaptive_p",
    "infill",
]
# common_params_sampling in llama.cpp's common.h
DEFAULT_SAMPLERS: tuple[SamplerName, ...] = (
    *("penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"),
)
DEFAULT_BREAKERS = ("\n", ":", '"', "*")

_INT32 = 2**31 - 1
Share = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=0, le=_INT32)]
Window = Annotated[int, Meta(ge=-1, le=_INT32)]
Some = Annotated[int, Meta(ge=1, le=_INT32)]
Strength = Annotated[float, Meta(ge=0, le=100)]
Signed = Annotated[float, Meta(ge=-100, le=100)]
Texts = Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=1000)], ...], Meta(max_length=64)]


class Options(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a Modelfile, a GGUF or a request may set. `None` means: not set here, look further down.

    `stop` adds to lower layers' stops, the rest replace them. Meanings: see `SamplingParams`; besides

    max_tokens  tokens of an answer at most       ctx         tokens of context to load the model with
    min_tokens  tokens before an answer may end   ignore_eos  it ends by its limits alone
    banned_strings  never part of an answer
    time_limit      seconds, from when the model has the request, after which its answers end as they are
    """

    temperature: Strength | None = None
    top_k: Count | None = None
    top_p: Share | None = None
    min_p: Share | None = None
    typical_p: Share | None = None
    repeat_penalty: Annotated[float, Meta(ge=0.01, le=100)] | None = None
    repeat_last_n: Window | None = None
    presence_penalty: Signed | None = None
    frequency_penalty: Signed | None = None
    dynatemp_range: Strength | None = None
    dynatemp_exponent: Strength | None = None
    top_n_sigma: Annotated[float, Meta(ge=-1, le=100)] | None = None
    xtc_probability: Share | None = None
    xtc_threshold: Share | None = None
    dry_multiplier: Strength | None = None
    dry_base: Annotated[float, Meta(ge=1, le=100)] | None = None
    dry_allowed_length: Count | None = None
    dry_penalty_last_n: Window | None = None
    dry_sequence_breakers: Texts | None = None
    mirostat: Annotated[int, Meta(ge=0, le=2)] | None = None
    mirostat_tau: Strength | None = None
    mirostat_eta: Share | None = None
    adaptive_target: Annotated[float, Meta(ge=-1, le=1)] | None = None
    adaptive_decay: Annotated[float, Meta(ge=0, le=0.99)] | None = None
    min_keep: Count | None = None
    samplers: tuple[SamplerName, ...] | None = None
    seed: int | None = None
    max_tokens: Count | None = None
    min_tokens: Count | None = None
    ignore_eos: bool | None = None
    time_limit: Annotated[float, Meta(ge=0.001, le=_INT32)] | None = None
    banned_strings: Texts | None = None
    stop: tuple[str, ...] = ()
    ctx: Some | None = None

    def over(self, lower: Options) -> Options:
        """These options laid over `lower`: what is set here wins, stops are joined in order."""
        stops = tuple(dict.fromkeys((*lower.stop, *self.stop)))
        set_here = {
            name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None
        }
        return msgspec.structs.replace(lower, **{**set_here, "stop": stops})


class SamplingParams(msgspec.Struct, frozen=True, kw_only=True):
    """How the next token is chosen; every value decided. The defaults are llama.cpp's.

    temperature  0 or less takes the likeliest token (greedy); otherwise logits are divided by it
    top_k        keep the k likeliest tokens; 0 keeps all
    top_p        keep the likeliest tokens whose probabilities sum to p; 1 keeps all
    min_p        drop tokens less likely than p times the likeliest; 0 keeps all
    typical_p    locally typical sampling; 1 is off
    repeat_*     penalise tokens seen in the last n (0: off, -1: the whole context); 1.0 is off
    dynatemp_*   the temperature moves by up to `range` with the entropy of the choice; 0 is off
    top_n_sigma  keep tokens within n standard deviations of the likeliest; 0 or less is off
    xtc_*        with this probability drop all but the least likely of those above the threshold; 0 is off
    dry_*        penalise tokens that lengthen a repetition past `allowed_length`; multiplier 0 is off
    mirostat     1 or 2: steer to a surprise of `tau` with rate `eta`, in place of all but temperature
    adaptive_*   select tokens near this probability over time; only where `samplers` names adaptive_p
    min_keep     tokens that a sampler leaves over at least
    samplers     which of them, in this order
    seed         None draws a fresh one; the one used is reported
    logit_bias   token id -> added to its logit
    """

    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    typical_p: float = 1.0
    repeat_penalty: float = 1.0
    repeat_last_n: int = 64
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    dynatemp_range: float = 0.0
    dynatemp_exponent: float = 1.0
    top_n_sigma: float = -1.0
    xtc_probability: float = 0.0
    xtc_threshold: float = 0.1
    dry_multiplier: float = 0.0
    dry_base: float = 1.75
    dry_allowed_length: int = 2
    dry_penalty_last_n: int = 64
    dry_sequence_breakers: tuple[str, ...] = DEFAULT_BREAKERS
    mirostat: int = 0
    mirostat_tau: float = 5.0
    mirostat_eta: float = 0.1
    adaptive_target: float = -1.0
    adaptive_decay: float = 0.9
    min_keep: int = 0
    samplers: tuple[SamplerName, ...] = DEFAULT_SAMPLERS
    seed: int | None = None
    logit_bias: dict[int, float] = {}

    @classmethod
    def from_options(cls, options: Options, logit_bias: dict[int, float]) -> SamplingParams:
        """The decided values: an option that is set, else the default."""
        chosen = {
            name: value
            for name in cls.__struct_fields__
            if name != "logit_bias" and (value := getattr(options, name)) is not None
        }
        return cls(logit_bias=logit_bias, **chosen)
