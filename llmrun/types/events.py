"""What comes back, in order; every request ends in exactly one Finished or Failed."""

from __future__ import annotations

import sys
from array import array
from typing import Any, Literal

import msgspec

FinishReason = Literal["stop", "length", "tool_calls"]
Limit = Literal["tokens", "context", "time", "lines"]
"""What ends an answer of the reason "length": the most tokens it may have, a full context, its time, or the
rules of `llmrun.engine.lines`."""


class TopLogprob(msgspec.Struct, frozen=True, array_like=True):
    """A candidate: its id, its raw bytes (a token may hold part of a character), its log probability."""

    id: int
    raw: bytes
    logprob: float


class SamplerStage(msgspec.Struct, frozen=True, array_like=True):
    """What one sampler made of the candidates: `left` of them can still be chosen, `top` are the likeliest,
    and `logprob` is that of the token that was chosen in the end."""

    name: str
    left: int
    logprob: float
    top: tuple[TopLogprob, ...] = ()


class TokenLogprob(msgspec.Struct, frozen=True, array_like=True):
    """A chosen token beside the likeliest ones, from the model's logits before any sampler. `stages`, where
    they were wanted: what the grammar and each sampler made of these, in order; a forced token has none."""

    id: int
    raw: bytes
    logprob: float
    top: tuple[TopLogprob, ...] = ()
    stages: tuple[SamplerStage, ...] = ()


class PromptToken(msgspec.Struct, frozen=True, array_like=True):
    """A token of the prompt beside the likeliest ones in its place; a prompt's first has no probability."""

    id: int
    raw: bytes
    logprob: float | None
    top: tuple[TopLogprob, ...] = ()


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of one request over all its answers; `cached` counts prompt tokens not computed again,
    `reasoning` those of the completion that were thought before an answer. `drafted` were guessed ahead and
    computed, `accepted` of them became part of the completion. `truncated`: prompt tokens that were left out,
    as the request allowed."""

    prompt: int
    completion: int
    cached: int = 0
    reasoning: int = 0
    drafted: int = 0
    accepted: int = 0
    truncated: int = 0


class Timings(msgspec.Struct, frozen=True, kw_only=True):
    """Milliseconds. `queue`: until the first prompt token is computed; `prefill`: the prompt;
    `decode`: first to last token; `ttft`: arrival to first token; `itl`: mean time between tokens;
    `load`: the part of `queue` until the model was loaded and had room. `itl_p50`, `itl_p95`, `itl_max`:
    percentiles of the time between tokens, where those that came together count as one, and the longest."""

    queue_ms: float
    prefill_ms: float
    decode_ms: float
    ttft_ms: float
    itl_ms: float
    load_ms: float = 0.0
    itl_p50_ms: float = 0.0
    itl_p95_ms: float = 0.0
    itl_max_ms: float = 0.0


class ErrorInfo(msgspec.Struct, frozen=True, kw_only=True):
    """An error as it crosses a process border; `code` is a key of the table in `llmrun.errors`."""

    code: str
    message: str
    hint: str = ""
    field: str | None = None
    details: dict[str, Any] = {}


class Started(msgspec.Struct, frozen=True, tag="started"):
    """The prompt is tokenised and its answers have sequences; sent once, before any text."""

    prompt_tokens: int
    seed: int


class Progress(msgspec.Struct, frozen=True, tag="progress"):
    """Prompt tokens computed so far, `cached` of them found in the cache, in `elapsed_ms` since the first of
    them was begun. Sent where the request wanted it, at most once a step; the last has all of them."""

    processed: int
    total: int
    cached: int
    elapsed_ms: float = 0.0


class Pace(msgspec.Struct, frozen=True, tag="pace"):
    """Answer `index` has so many tokens, made in `elapsed_ms` since the request's first one. Sent where the
    request wanted it, in front of what a step adds to the answer."""

    index: int
    tokens: int
    elapsed_ms: float


class PromptLogprobs(msgspec.Struct, frozen=True, tag="prompt_logprobs"):
    """The next of the prompt's own tokens, for every answer; before any of its text."""

    tokens: tuple[PromptToken, ...]


class Text(msgspec.Struct, frozen=True, tag="text"):
    """More of answer `index`: valid UTF-8, never part of a stop string. May be empty with logprobs.
    `tokens`: the ids it came of, where the request wanted them."""

    index: int
    text: str
    logprobs: tuple[TokenLogprob, ...] = ()
    tokens: tuple[int, ...] = ()


class Reasoning(msgspec.Struct, frozen=True, tag="reasoning"):
    """More of what answer `index` thinks before it answers; like Text otherwise."""

    index: int
    text: str
    logprobs: tuple[TokenLogprob, ...] = ()


class CallStarted(msgspec.Struct, frozen=True, tag="call_started"):
    """Answer `index` makes a tool call, its `call`-th from 0. `id` is unique."""

    index: int
    call: int
    id: str
    name: str


class CallArguments(msgspec.Struct, frozen=True, tag="call_arguments"):
    """More of the JSON text of a call's arguments."""

    index: int
    call: int
    text: str


class Stopped(msgspec.Struct, frozen=True, tag="stopped"):
    """Answer `index` is complete. `stop_sequence` names the stop string that ended it, if one did.
    `tokens`: prompt and answer as token ids, where the request wanted them, without the `left_out` that made
    room for more (`Shift`). A call that the length limit cut is "length", not "tool_calls". `limit` is there
    with the reason "length"."""

    index: int
    reason: FinishReason
    stop_sequence: str | None = None
    tokens: tuple[int, ...] = ()
    limit: Limit | None = None
    left_out: int = 0


class Finished(msgspec.Struct, frozen=True, tag="finished"):
    """The request ended well; the last event."""

    usage: Usage
    timings: Timings


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The request ended badly; the last event."""

    error: ErrorInfo


class Embedded(msgspec.Struct, frozen=True, tag="embedded"):
    """The vector of input `index`: float32, little-endian. `truncated`: tokens that were cut from it."""

    index: int
    vector: bytes
    truncated: int = 0

    def numbers(self) -> list[float]:
        """The vector's numbers."""
        values = array("f", self.vector)
        if sys.byteorder == "big":
            values.byteswap()
        return values.tolist()


class Ranked(msgspec.Struct, frozen=True, tag="ranked"):
    """How well document `index` answers the query; higher is better."""

    index: int
    score: float


class Tokenized(msgspec.Struct, frozen=True, tag="tokenized"):
    """Token ids, and the bytes of each where those were wanted; a control token's are its spelling."""

    tokens: tuple[int, ...]
    pieces: tuple[bytes, ...] = ()


class Rendered(msgspec.Struct, frozen=True, tag="rendered"):
    """Text that was asked for: a prompt, or the text of token ids."""

    text: str


Event = (
    Started
    | Progress
    | Pace
    | PromptLogprobs
    | Text
    | Reasoning
    | CallStarted
    | CallArguments
    | Stopped
    | Embedded
    | Ranked
    | Tokenized
    | Rendered
    | Finished
    | Failed
)
Terminal = Finished | Failed
