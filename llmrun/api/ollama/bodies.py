"""The bodies of `/api/generate` and `/api/chat`: every field, its type and its bounds.

Fields are those of Ollama's API reference (docs/api.md in its repository). A description ends up in the
tables of docs/api.md.
"""

from __future__ import annotations

import json
from typing import Annotated, get_args

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema, model_validator

from llmrun.api.bounds import INT32, MAX_MESSAGES, MAX_TOOLS
from llmrun.api.ollama.messages import OllamaMessage, OllamaTool
from llmrun.api.ollama.options import ModelOptions
from llmrun.api.options import OVERFLOW
from llmrun.api.schema import Body, Refused, wrong
from llmrun.config import parse_duration
from llmrun.store.go_syntax import Untranslatable
from llmrun.store.go_template import looks_go, to_jinja
from llmrun.types import Effort, Options, OutputFormat, Overflow, Thinking

TokenId = Annotated[int, Field(ge=0, le=INT32)]

LONGEST_KEEP = 2**31
"""Seconds; what is asked to stay longer stays for ever."""
MAX_TEMPLATE = 2**18
"""Characters; the largest chat templates have near 30,000."""


def _seconds(value: object) -> float | None:
    """Seconds, or text such as `5m`; negative means for ever."""
    try:
        if value is None:
            return None
        if isinstance(value, str) and (size := value.strip().removeprefix("-")):
            seconds = parse_duration(size)
            seconds = float("inf") if value.strip().startswith("-") else seconds
        elif isinstance(value, int | float) and not isinstance(value, bool):
            seconds = float("inf") if value < 0 else float(value)
        else:
            raise ValueError
    except (ValueError, OverflowError):
        raise wrong("should be seconds, or a duration such as '5m'; -1 is for ever") from None
    return seconds if seconds < LONGEST_KEEP else float("inf")


KeepAlive = Annotated[
    float | None,
    PlainValidator(_seconds),
    WithJsonSchema({"type": ["string", "number", "null"]}),
    Field(
        description="how long the model stays once it is idle: seconds, or a duration such as `5m`; 0 "
        "unloads it after this request, −1 is for ever; default: as before, at first `LLMRUN_KEEP_ALIVE`"
    ),
]


def _format(value: object) -> OutputFormat | None:
    """What the answer must look like; None or an empty text: free text."""
    if value is None or value == "":
        return None
    if value == "json":
        return OutputFormat(kind="json_object", field="format")
    if not isinstance(value, dict):
        raise wrong("should be 'json' or a JSON Schema, an object")
    try:
        return OutputFormat(kind="json_schema", text=json.dumps(value, ensure_ascii=False), field="format")
    except RecursionError:
        raise wrong("is nested too deeply") from None


def _thinking(value: object) -> Thinking | None:
    """On, off, or on with an effort."""
    if value is None:
        return None
    if isinstance(value, bool):
        return Thinking(enabled=value, field="think")
    for effort in get_args(Effort):
        if value == effort:
            return Thinking(enabled=True, effort=effort, field="think")
    raise wrong(f"should be true, false or one of {', '.join(map(repr, get_args(Effort)))}")


class Sampling(Body):
    """The fields that both routes share."""

    model: Annotated[str, Field(min_length=1, description="a name that `llmrun list` shows")]
    options: Annotated[ModelOptions | None, Field(description="how to sample")] = None
    stream: Annotated[bool | None, Field(description="lines of JSON; on unless false")] = None
    keep_alive: KeepAlive = None
    logprobs: Annotated[bool | None, Field(description="log probabilities, before any sampler")] = None
    top_logprobs: Annotated[int | None, Field(ge=0, le=20, description="0 to 20, with `logprobs`")] = None
    format: Annotated[
        OutputFormat | None,
        PlainValidator(_format),
        WithJsonSchema({"type": ["string", "object", "null"]}),
        Field(description="`json` for any JSON object, or a JSON Schema, which the answer then keeps to"),
    ] = None
    think: Annotated[
        Thinking | None,
        PlainValidator(_thinking),
        WithJsonSchema({"type": ["boolean", "string", "null"]}),
        Field(description="reasoning on, off, or on and how much (`low`, …); default: as the model has it"),
    ] = None
    truncate: Annotated[
        bool | None, Field(description="true: the oldest turns of a prompt that is too long are left out")
    ] = None
    shift: Annotated[
        bool | None, Field(description="true: the same, and a full answer goes on without its oldest part")
    ] = None
    context_overflow: Annotated[Overflow | None, Field(description=OVERFLOW)] = None

    @property
    def overflow(self) -> Overflow:
        """What becomes of a prompt that is too long."""
        return self.context_overflow or ("shift" if self.truncate or self.shift else "error")

    @property
    def streams(self) -> bool:
        return self.stream is not False

    @property
    def wants_logprobs(self) -> int | None:
        """How many alternatives each token's record shall have; None for no records."""
        return (self.top_logprobs or 0) if self.logprobs else None

    def sampling(self) -> Options:
        return self.options.options() if self.options else Options()

    @model_validator(mode="after")
    def _top_logprobs_need_logprobs(self) -> Sampling:
        if self.top_logprobs and not self.logprobs:
            raise wrong("is only allowed with logprobs: true", "top_logprobs")
        return self


def _jinja(value: object) -> object:
    """A template as Jinja; Ollama's own are written for Go."""
    if not isinstance(value, str):
        return value
    if len(value) > MAX_TEMPLATE:
        raise wrong(f"should have at most {MAX_TEMPLATE} characters")
    try:
        return to_jinja(value) if looks_go(value) else value
    except (Untranslatable, RecursionError) as problem:
        why = "it is nested too deeply" if isinstance(problem, RecursionError) else problem
        raise wrong(f"has no twin in Jinja: {why}", hint="write it in Jinja") from None


JinjaOrGo = BeforeValidator(_jinja)


class GenerateBody(Sampling):
    prompt: Annotated[str | None, Field(description="none or empty: the model is only loaded")] = None
    system: Annotated[str | None, Field(description="in place of the model's own system prompt")] = None
    template: Annotated[
        str | None,
        JinjaOrGo,
        Field(description="in place of the model's own chat template: Jinja, or Go that has a twin in Jinja"),
    ] = None
    raw: Annotated[bool | None, Field(description="the prompt goes to the model as it is")] = None
    context: Annotated[
        list[TokenId] | None,
        Field(description="the `context` of an earlier reply: its prompt and answer come before this prompt"),
    ] = None
    suffix: Annotated[
        str | None,
        Field(description="the answer fits between prompt and suffix; for models made to fill in the middle"),
    ] = None
    images: Annotated[object, Refused("image input", unless=([],))] = None
    width: Annotated[object, Refused("image output")] = None
    height: Annotated[object, Refused("image output")] = None
    steps: Annotated[object, Refused("image output")] = None

    @model_validator(mode="after")
    def _bare_prompts_are_bare(self) -> GenerateBody:
        for name in ("system", "template", "context"):
            if self.raw and getattr(self, name):
                raise wrong("is not allowed with raw: true", name)
        if (self.raw or self.suffix) and self.think and self.think.enabled:
            raise wrong("is only allowed where the chat template is used", "think")
        for name in ("system", "template", "context", "raw"):
            if self.suffix and getattr(self, name):
                raise wrong("is not allowed with suffix", name)
        return self


class OllamaChatBody(Sampling):
    messages: Annotated[
        list[OllamaMessage] | None,
        Field(
            max_length=MAX_MESSAGES,
            description="where the last one is the assistant's, the answer goes on from it; none: the model "
            "is only loaded",
        ),
    ] = None
    tools: Annotated[
        list[OllamaTool] | None, Field(max_length=MAX_TOOLS, description="what the model may call")
    ] = None
