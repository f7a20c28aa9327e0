"""Generation options that the dialects name alike, from a checked body to `Options`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from pydantic import BeforeValidator, Field, model_validator

from llmrun.api.schema import Body, one_value
from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.types import Options, Overflow, SamplerName
from llmrun.types.option_text import sampler_names

_TYPES = {field.name: field.type for field in msgspec.structs.fields(Options)}
MAX_TEXTS = 64

Texts = Annotated[list[Annotated[str, Field(min_length=1, max_length=1000)]], Field(max_length=MAX_TEXTS)]


def within(name: str, description: str) -> Any:
    """The pydantic field of an option: the bounds that it has everywhere, and what it does."""
    schema = msgspec.json.schema(_TYPES[name])["anyOf"][0]
    return Field(ge=schema.get("minimum"), le=schema.get("maximum"), description=description)


def _samplers(value: object) -> object:
    return sampler_names(value) if isinstance(value, str | list) else value


OVERFLOW = (
    "llmrun's; what becomes of a prompt that is too long: `error` (the default), `shift` leaves out the "
    "oldest turns and lets a full answer go on likewise, `truncate_middle` leaves out the middle"
)


class LlamaSampling(Body):
    """The fields that carry llama-server's names in every dialect that takes them."""

    top_k: Annotated[int | None, within("top_k", "llama.cpp's; 0 keeps all")] = None
    min_p: Annotated[float | None, within("min_p", "llama.cpp's; 0 is off")] = None
    typical_p: Annotated[float | None, within("typical_p", "llama.cpp's; 1 is off")] = None
    typ_p: Annotated[float | None, within("typical_p", "the same as `typical_p`")] = None
    repeat_penalty: Annotated[float | None, within("repeat_penalty", "llama.cpp's; 1 is off")] = None
    repeat_last_n: Annotated[
        int | None, within("repeat_last_n", "llama.cpp's; 0 is off, −1 the whole context")
    ] = None
    dynatemp_range: Annotated[
        float | None, within("dynatemp_range", "llama.cpp's; how far the temperature moves; 0 is off")
    ] = None
    dynatemp_exponent: Annotated[
        float | None, within("dynatemp_exponent", "llama.cpp's; with `dynatemp_range`")
    ] = None
    top_n_sigma: Annotated[float | None, within("top_n_sigma", "llama.cpp's; 0 or less is off")] = None
    xtc_probability: Annotated[float | None, within("xtc_probability", "llama.cpp's; 0 is off")] = None
    xtc_threshold: Annotated[float | None, within("xtc_threshold", "llama.cpp's; above 0.5 is off")] = None
    dry_multiplier: Annotated[float | None, within("dry_multiplier", "llama.cpp's; 0 is off")] = None
    dry_base: Annotated[float | None, within("dry_base", "llama.cpp's; with `dry_multiplier`")] = None
    dry_allowed_length: Annotated[
        int | None, within("dry_allowed_length", "llama.cpp's; longer repetitions are penalised")
    ] = None
    dry_penalty_last_n: Annotated[
        int | None, within("dry_penalty_last_n", "llama.cpp's; 0 is off, −1 the whole context")
    ] = None
    dry_sequence_breakers: Annotated[
        Texts | None, Field(description="llama.cpp's; texts that end a repetition")
    ] = None
    mirostat: Annotated[int | None, within("mirostat", "llama.cpp's; 1 or 2; 0 is off")] = None
    mirostat_tau: Annotated[float | None, within("mirostat_tau", "llama.cpp's; with `mirostat`")] = None
    mirostat_eta: Annotated[float | None, within("mirostat_eta", "llama.cpp's; with `mirostat`")] = None
    adaptive_target: Annotated[
        float | None, within("adaptive_target", "llama.cpp's; where `samplers` names adaptive_p")
    ] = None
    adaptive_decay: Annotated[
        float | None, within("adaptive_decay", "llama.cpp's; with `adaptive_target`")
    ] = None
    min_keep: Annotated[int | None, within("min_keep", "llama.cpp's; tokens that samplers leave")] = None
    samplers: Annotated[
        list[SamplerName] | None,
        Field(max_length=16, description="llama.cpp's; which of them, in order; letters stand for names"),
        BeforeValidator(_samplers),
    ] = None
    ignore_eos: Annotated[
        bool | None, Field(description="llama.cpp's; the answer ends by its limits alone")
    ] = None
    min_tokens: Annotated[
        int | None, within("min_tokens", "vLLM's; tokens before the model may end its answer")
    ] = None
    time_limit: Annotated[
        float | None,
        within("time_limit", "llmrun's; seconds, then the answer ends as it is, with the reason `length`"),
    ] = None
    context_overflow: Annotated[Overflow | None, Field(description=OVERFLOW)] = None
    banned_strings: Annotated[Texts | None, Field(description="texts that never come in the answer")] = None

    @model_validator(mode="after")
    def _one_typical_p(self) -> LlamaSampling:
        one_value(self, "typical_p", "typ_p")
        return self


_OTHER_NAMES = {"typ_p": "typical_p"}
_TAKEN = [name for name in (*_TYPES, *_OTHER_NAMES) if name not in ("max_tokens", "stop", "ctx")]


def options_of(body: Body, *, max_tokens: int | None, stop: Sequence[str] | None, ctx: int | None) -> Options:
    """What `body` sets by the options' own names; the limits have other names in each dialect."""
    found = {name: getattr(body, name, None) for name in _TAKEN}
    given = {_OTHER_NAMES.get(name, name): value for name, value in found.items() if value is not None}
    limits = {"max_tokens": max_tokens, "stop": tuple(stop or ()), "ctx": ctx}
    try:
        return msgspec.convert({**given, **limits}, Options)
    except msgspec.ValidationError as error:  # a dialect's own bounds are wider than the options'
        raise LlmrunError(INVALID_REQUEST, f"an option is out of its bounds: {error}") from None
