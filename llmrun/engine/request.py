"""What the engine is asked for: token ids and how to go on from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from llmrun.engine.guide import Guide
from llmrun.types import Limit, SamplingParams

Adapters = tuple[float, ...]  # how strongly each of the loaded ones counts


@dataclass(frozen=True)
class Shift:
    """What becomes of an answer whose tokens, with the prompt's, fill `window`: of those behind the first
    `keep` the older half is left out, and it goes on. The rest is computed anew at its new places, which is
    right for every kind of model, where moving KV is not, and costs a prefill of half a window each time."""

    window: int
    keep: int


@dataclass(frozen=True, kw_only=True)
class EngineRequest:
    """One prompt. Ids are valid for the model, and at least one.

    max_tokens  tokens to generate per answer; 0: the prompt is computed and no more; None: as far as the
                context reaches
    limited_by  what `max_tokens` is the limit of
    stop        non-empty strings that end an answer; they are not part of it
    logprobs    None: off; k: with the k likeliest alternatives
    stages      with logprobs: also those after each sampler
    score_from  where logprobs are on: also those of the prompt's tokens from this place on, which are then
                all computed, whatever is cached; None: off
    seed        32 bits; answer i samples with seed + i
    arrived     when it arrived, on the engine's clock
    deadline    when its answers end as they are, on the same clock; None: never
    tokens      whether texts and the end of an answer carry their token ids
    progress, pace  whether Progress and Pace events are wanted
    min_indent, line_seconds  see `llmrun.engine.lines`
    adapters    one number for each adapter of the context; sequences share KV where these are equal
    constraints one for each answer, which the request gives away; empty: answers are free
    client      who asks: clients take turns           priority  lower begins sooner
    shift       None: an answer that fills the context ends
    truncated   tokens of the prompt that were left out before it came here
    drafts      whether tokens may be guessed ahead. That changes no distribution, but how many rows a step
                has moves logits a little, and whether it pays is measured: an answer that shall come out the
                same again is better without
    shown       control tokens that are part of an answer's text, and the bytes they stand for
    """

    id: str
    prompt: tuple[int, ...]
    params: SamplingParams
    seed: int
    arrived: float
    deadline: float | None = None
    n: int = 1
    max_tokens: int | None = None
    limited_by: Limit = "tokens"
    stop: tuple[str, ...] = field(default=())
    logprobs: int | None = None
    stages: bool = False
    score_from: int | None = None
    constraints: tuple[Guide, ...] = ()
    shown: Mapping[int, bytes] = field(default_factory=dict)
    tokens: bool = False
    progress: bool = False
    pace: bool = False
    min_indent: int = 0
    line_seconds: float | None = None
    adapters: Adapters = ()
    client: str = ""
    priority: int = 0
    drafts: bool = True
    shift: Shift | None = None
    truncated: int = 0
