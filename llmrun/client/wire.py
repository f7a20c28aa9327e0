"""The shapes the daemon sends, as far as the client reads them, and the bodies it is sent. Pure.

Unknown fields are ignored, so that a newer daemon can add some.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from llmrun.errors import INTERNAL, KINDS, LlmrunError
from llmrun.types import (
    FinishReason,
    Limit,
    Message,
    Options,
    OutputFormat,
    Progress,
    Reasoning,
    Stats,
    Text,
    Timings,
    Usage,
)

Part = Text | Reasoning | Progress
"""What an answer is made of while it comes."""

_STREAMED = {"stream": True, "stream_options": {"include_usage": True}, "return_progress": True}


class Delta(msgspec.Struct, frozen=True):
    content: str | None = None
    reasoning_content: str | None = None


class Choice(msgspec.Struct, frozen=True):
    delta: Delta = Delta()
    text: str | None = None
    finish_reason: FinishReason | None = None
    limit: Limit | None = None

    def parts(self) -> Iterator[Part]:
        """What this chunk adds, chat or completion."""
        if self.delta.reasoning_content:
            yield Reasoning(0, self.delta.reasoning_content)
        if text := self.delta.content or self.text:
            yield Text(0, text)


class WireProgress(msgspec.Struct, frozen=True):
    """How far the prompt is, in tokens."""

    processed: int
    total: int
    cache: int = 0
    time_ms: float = 0.0

    def progress(self) -> Progress:
        return Progress(self.processed, self.total, self.cache, self.time_ms)


class PromptDetails(msgspec.Struct, frozen=True):
    cached_tokens: int | None = None
    truncated_tokens: int | None = None


class CompletionDetails(msgspec.Struct, frozen=True):
    reasoning_tokens: int | None = None
    accepted_prediction_tokens: int | None = None
    rejected_prediction_tokens: int | None = None


class WireUsage(msgspec.Struct, frozen=True):
    prompt_tokens: int
    completion_tokens: int = 0
    prompt_tokens_details: PromptDetails | None = None
    completion_tokens_details: CompletionDetails | None = None

    def usage(self) -> Usage:
        details = self.prompt_tokens_details or PromptDetails()
        made = self.completion_tokens_details or CompletionDetails()
        accepted = made.accepted_prediction_tokens or 0
        return Usage(
            prompt=self.prompt_tokens,
            completion=self.completion_tokens,
            cached=details.cached_tokens or 0,
            truncated=details.truncated_tokens or 0,
            reasoning=made.reasoning_tokens or 0,
            drafted=accepted + (made.rejected_prediction_tokens or 0),
            accepted=accepted,
        )


class WireError(msgspec.Struct, frozen=True):
    message: str
    code: str | int | None = None
    param: str | None = None
    details: dict[str, Any] = {}

    def error(self) -> LlmrunError:
        """The error the daemon meant; its message already holds the hint."""
        kind = KINDS.get(str(self.code), INTERNAL)
        return LlmrunError(kind, self.message, hint="", field=self.param, **self.details)


class ErrorBody(msgspec.Struct, frozen=True):
    error: WireError


class Chunk(msgspec.Struct, frozen=True):
    choices: list[Choice] = []
    prompt_progress: WireProgress | None = None
    usage: WireUsage | None = None
    timings: Timings | None = None
    error: WireError | None = None

    def parts(self) -> Iterator[Part]:
        """What this chunk adds to the answer."""
        if self.prompt_progress:
            yield self.prompt_progress.progress()
        for choice in self.choices:
            yield from choice.parts()


class WholeMessage(msgspec.Struct, frozen=True):
    content: str | None = None


class WholeChoice(msgspec.Struct, frozen=True):
    message: WholeMessage
    finish_reason: FinishReason | None = None


class Completion(msgspec.Struct, frozen=True):
    """A chat completion that was not streamed."""

    choices: list[WholeChoice]
    usage: WireUsage | None = None
    timings: Timings | None = None

    @property
    def text(self) -> str:
        """What the one answer says."""
        return "".join(choice.message.content or "" for choice in self.choices)

    @property
    def finish_reason(self) -> FinishReason | None:
        return next((choice.finish_reason for choice in self.choices), None)


class Tokens(msgspec.Struct, frozen=True):
    tokens: list[int]


class TokenCount(msgspec.Struct, frozen=True):
    input_tokens: int


class WireVector(msgspec.Struct, frozen=True):
    index: int
    embedding: list[float]


class WireCut(msgspec.Struct, frozen=True):
    index: int
    tokens_cut: int


class EmbeddingsReply(msgspec.Struct, frozen=True):
    """The vectors of a request's texts; `truncated` names those texts that were cut."""

    data: list[WireVector]
    truncated: list[WireCut] = []

    def vectors(self) -> list[list[float]]:
        """In the order of the texts."""
        return [item.embedding for item in sorted(self.data, key=lambda item: item.index)]


class LoadedInfo(msgspec.Struct, frozen=True):
    """Contexts in tokens, sizes in bytes, `parallel` sequences that are decoded together."""

    ctx: int
    parallel: int
    size: int
    kv_bytes: int
    device: str
    kind: str = "chat"


class LoadedModel(msgspec.Struct, frozen=True):
    """A model in memory. `info` and `stats` come once it is loaded; times in unix seconds."""

    name: str
    state: str
    progress: float = 0.0
    info: LoadedInfo | None = None
    stats: Stats | None = None
    pid: int | None = None
    since: float | None = None
    expires_at: float | None = None
    in_flight: int = 0


def chat_body(
    model: str,
    messages: Sequence[Message],
    options: Options,
    output: OutputFormat | None = None,
    think: bool | None = None,
) -> dict[str, Any]:
    """A streamed chat request. `think`: reasoning on or off; None leaves it as the model has it."""
    return {**whole_chat_body(model, messages, options, output, think), **_STREAMED}


def whole_chat_body(
    model: str,
    messages: Sequence[Message],
    options: Options,
    output: OutputFormat | None = None,
    think: bool | None = None,
) -> dict[str, Any]:
    """A chat request whose answer comes at once."""
    thinking = {} if think is None else {"think": think}
    return {"model": model, "messages": turns(messages), **_wanted(options, output), **thinking}


def turns(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages as the dialect has them."""
    return [
        {
            "role": message.role,
            "content": message.content,
            **({"reasoning_content": message.reasoning} if message.reasoning else {}),
        }
        for message in messages
    ]


def completion_body(
    model: str, prompt: str | Sequence[int], options: Options, output: OutputFormat | None = None
) -> dict[str, Any]:
    """A streamed request for a raw prompt, text or token ids, with no template around it."""
    return {"model": model, "prompt": prompt, **_wanted(options, output), **_STREAMED}


def _wanted(options: Options, output: OutputFormat | None) -> dict[str, Any]:
    """What all requests share. The dialect knows every option by our name; those not set are left out."""
    body: dict[str, Any] = msgspec.to_builtins(options)
    if output is not None:
        body["response_format"] = _response_format(output)
    return body


def _response_format(output: OutputFormat) -> dict[str, Any]:
    """`json_object` or `json_schema`, the two that a person can ask for."""
    if output.kind == "json_object":
        return {"type": "json_object"}
    schema = msgspec.json.decode(output.text)
    return {"type": "json_schema", "json_schema": {"name": "schema", "schema": schema, "strict": True}}


def error_of(status: int, body: bytes) -> LlmrunError:
    """The error in a response that is one; a body in no known shape is quoted."""
    try:
        return msgspec.json.decode(body, type=ErrorBody).error.error()
    except msgspec.DecodeError:
        said = body[:200].decode("utf-8", "replace").strip() or "nothing"
        return LlmrunError(
            INTERNAL,
            f"the daemon answered {status} and said {said!r}",
            hint="is it llmrun that listens there?",
        )
