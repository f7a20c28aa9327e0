"""The shapes the daemon sends, as far as the client reads them, and the bodies it is sent. Pure.

Unknown fields are ignored, so that a newer daemon can add some.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from llmrun.errors import INTERNAL, KINDS, LlmrunError
from llmrun.types import Message, Options, OutputFormat, Timings, Usage


class Delta(msgspec.Struct, frozen=True):
    content: str | None = None


class Choice(msgspec.Struct, frozen=True):
    delta: Delta = Delta()
    text: str | None = None
    finish_reason: str | None = None

    def piece(self) -> str:
        """The text of this chunk, chat or completion."""
        return self.delta.content or self.text or ""


class PromptDetails(msgspec.Struct, frozen=True):
    cached_tokens: int | None = None


class CompletionDetails(msgspec.Struct, frozen=True):
    accepted_prediction_tokens: int | None = None
    rejected_prediction_tokens: int | None = None


class WireUsage(msgspec.Struct, frozen=True):
    prompt_tokens: int
    completion_tokens: int = 0
    prompt_tokens_details: PromptDetails | None = None
    completion_tokens_details: CompletionDetails | None = None

    def usage(self) -> Usage:
        details, made = self.prompt_tokens_details, self.completion_tokens_details or CompletionDetails()
        accepted = made.accepted_prediction_tokens or 0
        return Usage(
            prompt=self.prompt_tokens,
            completion=self.completion_tokens,
            cached=(details.cached_tokens or 0) if details else 0,
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
    usage: WireUsage | None = None
    timings: Timings | None = None
    error: WireError | None = None


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
    """Contexts in tokens, sizes in bytes."""

    ctx: int
    size: int
    kv_bytes: int
    device: str
    kind: str = "chat"


class LoadedStats(msgspec.Struct, frozen=True):
    running: int
    waiting: int
    kv_used: int
    kv_total: int
    decode_tps: float


class LoadedModel(msgspec.Struct, frozen=True):
    """A model in memory. `info` and `stats` come once it is loaded; times in unix seconds."""

    name: str
    state: str
    progress: float = 0.0
    info: LoadedInfo | None = None
    stats: LoadedStats | None = None
    pid: int | None = None
    since: float | None = None
    expires_at: float | None = None
    in_flight: int = 0


def chat_body(
    model: str, messages: Sequence[Message], options: Options, output: OutputFormat | None = None
) -> dict[str, Any]:
    """A streamed chat request."""
    turns = [{"role": message.role, "content": message.content} for message in messages]
    return {"model": model, "messages": turns, **_streamed(options, output)}


def completion_body(
    model: str, prompt: str, options: Options, output: OutputFormat | None = None
) -> dict[str, Any]:
    """A streamed request for a raw prompt, with no template around it."""
    return {"model": model, "prompt": prompt, **_streamed(options, output)}


def _streamed(options: Options, output: OutputFormat | None) -> dict[str, Any]:
    """What both requests share. The dialect knows every option by our name; those not set are left out."""
    body = {"stream": True, "stream_options": {"include_usage": True}, **msgspec.to_builtins(options)}
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
