"""The bodies of `/v1/chat/completions` and `/v1/completions`: every field, its type and its bounds.

OpenAI's fields are those of https://platform.openai.com/docs/api-reference; the further sampling
fields carry llama-server's names. A description ends up in the tables of docs/api.md.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema, model_validator

from llmrun.api.openai.response_format import ResponseFormat
from llmrun.api.options import LlamaSampling, options_of, within
from llmrun.api.schema import Body, Ignored, Refused, unsupported, wrong
from llmrun.types import Options, OutputFormat

INT32 = 2**31 - 1
MAX_CHOICES = 128
MAX_PROMPTS = 2048
MAX_STOPS = 64
MAX_MESSAGES = 10_000  # checking one costs tens of microseconds, in which nobody else is heard
MAX_DEPTH = 32

TokenId = Annotated[int, Field(ge=0, le=INT32)]


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _token_key(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) <= INT32):
        raise wrong("should be a token id written in digits")
    return int(text)


def _plain_json(value: object, depth: int = 0) -> object:
    """`value` if it can cross a pipe as it is: not too deep, its whole numbers within 64 bits."""
    if depth > MAX_DEPTH:
        raise wrong(f"is nested more than {MAX_DEPTH} deep")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise wrong("holds a number past 64 bits")
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _plain_json(item, depth + 1)
    return value


Stops = Annotated[
    list[Annotated[str, Field(min_length=1)]],
    Field(max_length=MAX_STOPS),
    BeforeValidator(_listed),
]
LogitBias = dict[
    Annotated[int, BeforeValidator(_token_key)],
    Annotated[float, Field(ge=-100, le=100)],
]


class StreamOptions(Body):
    include_usage: Annotated[
        bool | None, Field(description="a last chunk with empty `choices` and the `usage`")
    ] = None
    include_obfuscation: Annotated[bool | None, Ignored("no padding is sent")] = None


class Sampling(LlamaSampling):
    """The fields that both routes share."""

    model: Annotated[str, Field(min_length=1, description="a name that `llmrun list` shows")]
    temperature: Annotated[
        float | None,
        within("temperature", "0 takes the likeliest token; default: the model's, else 0.8"),
    ] = None
    top_p: Annotated[float | None, Field(gt=0, le=1, description="default: the model's, else 0.95")] = None
    presence_penalty: Annotated[float | None, Field(ge=-2, le=2, description="−2 to 2")] = None
    frequency_penalty: Annotated[float | None, Field(ge=-2, le=2, description="−2 to 2")] = None
    seed: Annotated[
        int | None, Field(ge=-1, lt=2**63, description="choice i uses seed + i; −1 or none: a fresh one")
    ] = None
    stop: Annotated[Stops | None, Field(description="a string or a list of them, none empty")] = None
    logit_bias: Annotated[LogitBias | None, Field(description="token id → −100 to 100")] = None
    n: Annotated[int | None, Field(ge=1, le=MAX_CHOICES, description="answers to one prompt")] = None
    response_format: Annotated[ResponseFormat | None, Field(description="what the answer must look like")] = (
        None
    )
    stream: Annotated[bool | None, Field(description="server-sent events")] = None
    stream_options: Annotated[StreamOptions | None, Field(description="only with `stream`")] = None
    ctx: Annotated[
        int | None,
        Field(ge=1, le=INT32, description="not OpenAI's; tokens of context to load the model with"),
    ] = None
    user: Annotated[str | None, Ignored("names the caller")] = None

    def options(self, max_tokens: int | None) -> Options:
        """What is set here, in the daemon's words; the limit has a name of its own in each route."""
        return options_of(self, max_tokens=max_tokens, stop=self.stop, ctx=self.ctx)

    def output_format(self) -> OutputFormat | None:
        """What the answers must look like; None: free text."""
        return self.response_format.output_format() if self.response_format else None

    @property
    def wants_usage(self) -> bool:
        """Whether a stream ends with a chunk of usage."""
        return bool(self.stream_options and self.stream_options.include_usage)

    @model_validator(mode="after")
    def _stream_options_need_stream(self) -> Sampling:
        if self.stream_options is not None and not self.stream:
            raise wrong("is only allowed with stream: true", "stream_options")
        return self


class TextPart(Body):
    type: Annotated[Literal["text"], Field(description="other types of part are refused")]
    text: Annotated[str, Field(description="parts are joined by newlines")]
    image_url: Annotated[object, Refused("image input")] = None
    input_audio: Annotated[object, Refused("audio input")] = None
    file: Annotated[object, Refused("file input")] = None
    refusal: Annotated[object, Refused("a refusal in the conversation")] = None
    prompt_cache_breakpoint: Annotated[object, Ignored("prompts are cached by themselves")] = None


def _parts(value: object) -> object:
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    if not isinstance(value, list):
        raise wrong("should be a string or a list of text parts")
    return value


def _role(value: object) -> object:
    if value in ("tool", "function"):
        raise unsupported("a tool's result in the conversation", hint="leave the message out")
    return value


class ChatMessage(Body):
    role: Annotated[
        Literal["system", "developer", "user", "assistant"],
        BeforeValidator(_role),
        Field(description="`system`, `developer` (the same), `user`, `assistant`; `tool` is refused"),
    ]
    content: Annotated[
        list[TextPart],
        BeforeValidator(_parts),
        Field(description="a string, or a list of parts", min_length=1),
    ]
    name: Annotated[str | None, Field(description="for templates that use it")] = None
    refusal: Annotated[object, Refused("a refusal in the conversation", unless=("",))] = None
    tool_calls: Annotated[object, Refused("tool calls in the conversation", unless=([],))] = None
    tool_call_id: Annotated[object, Refused("a tool's result in the conversation")] = None
    function_call: Annotated[object, Refused("a function call in the conversation")] = None
    audio: Annotated[object, Refused("audio in the conversation")] = None
    annotations: Annotated[object, Ignored("citations of an earlier answer")] = None

    def text(self) -> str:
        """The parts, joined by newlines."""
        return "\n".join(part.text for part in self.content)


class ChatBody(Sampling):
    messages: Annotated[
        list[ChatMessage],
        Field(min_length=1, max_length=MAX_MESSAGES, description="the last one is not the assistant's"),
    ]
    max_completion_tokens: Annotated[
        int | None, Field(ge=1, le=INT32, description="default: until the model ends or the context is full")
    ] = None
    max_tokens: Annotated[
        int | None, Field(ge=1, le=INT32, description="the older name of `max_completion_tokens`")
    ] = None
    logprobs: Annotated[bool | None, Field(description="log probabilities, before any sampler")] = None
    top_logprobs: Annotated[int | None, Field(ge=0, le=20, description="0 to 20, with `logprobs`")] = None
    chat_template_kwargs: Annotated[
        dict[str, Annotated[object, BeforeValidator(_plain_json)]] | None,
        Field(description="not OpenAI's; further variables for the chat template"),
    ] = None
    metadata: Annotated[dict[str, str] | None, Ignored("notes of the caller")] = None
    service_tier: Annotated[str | None, Ignored("there is one tier")] = None
    parallel_tool_calls: Annotated[bool | None, Ignored("there are no tool calls")] = None
    prediction: Annotated[dict[str, object] | None, Ignored("a hint for speed alone")] = None
    prompt_cache_key: Annotated[str | None, Ignored("prompts are cached by themselves")] = None
    prompt_cache_options: Annotated[object, Ignored("prompts are cached by themselves")] = None
    prompt_cache_retention: Annotated[str | None, Ignored("prompts are cached by themselves")] = None
    safety_identifier: Annotated[str | None, Ignored("names the caller")] = None
    store: Annotated[object, Refused("a stored answer", unless=(False,))] = None
    tools: Annotated[object, Refused("tool calls", unless=([],))] = None
    tool_choice: Annotated[object, Refused("tool calls", unless=("none",))] = None
    functions: Annotated[object, Refused("function calls", unless=([],))] = None
    function_call: Annotated[object, Refused("function calls", unless=("none",))] = None
    reasoning_effort: Annotated[object, Refused("control of the model's reasoning")] = None
    verbosity: Annotated[object, Refused("control of the answer's length", unless=("medium",))] = None
    modalities: Annotated[object, Refused("output other than text", unless=(["text"],))] = None
    audio: Annotated[object, Refused("audio output")] = None
    web_search_options: Annotated[object, Refused("a web search")] = None
    moderation: Annotated[object, Refused("moderation")] = None

    @model_validator(mode="after")
    def _rules_between_fields(self) -> ChatBody:
        old, new = self.max_tokens, self.max_completion_tokens
        if old is not None and new is not None and old != new:
            raise wrong(f"is {old} but max_completion_tokens is {new}: send one", "max_tokens")
        if self.top_logprobs and not self.logprobs:
            raise wrong("is only allowed with logprobs: true", "top_logprobs")
        return self


Prompt = str | tuple[int, ...]


def _prompts(value: object) -> tuple[Prompt, ...]:
    """Text, token ids, or a list of either, as a tuple of prompts."""
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list):
        raise wrong("should be text, a list of token ids, or a list of these")
    if value and _is_token(value[0]):
        return (_tokens(value, ""),)
    if not 1 <= len(value) <= MAX_PROMPTS:
        raise wrong(f"should hold 1 to {MAX_PROMPTS} prompts, not {len(value)}")
    return tuple(
        item if isinstance(item, str) else _tokens(item, f"{number}") for number, item in enumerate(value)
    )


def _tokens(value: object, where: str) -> tuple[int, ...]:
    if not isinstance(value, list) or not value:
        raise wrong("should be text or a list of token ids", where)
    for number, item in enumerate(value):
        if not _is_token(item):
            raise wrong("should be a token id, a whole number from 0", f"{where}.{number}".lstrip("."))
    return tuple(value)


def _is_token(value: object) -> bool:
    return type(value) is int and 0 <= value <= INT32


class CompletionBody(Sampling):
    prompt: Annotated[
        tuple[Prompt, ...],
        PlainValidator(_prompts),
        WithJsonSchema({"type": ["string", "array"], "items": {"type": ["string", "integer", "array"]}}),
        Field(description="text, token ids, or a list of either; choices are numbered prompt × n + i"),
    ]
    max_tokens: Annotated[
        int | None,
        Field(
            ge=1,
            le=INT32,
            description="default: until the model ends or the context is full (OpenAI's default: 16)",
        ),
    ] = None
    logprobs: Annotated[int | None, Field(ge=0, le=5, description="how many alternatives, 0 to 5")] = None
    echo: Annotated[bool | None, Field(description="the prompt in front; not with `logprobs` yet")] = None
    suffix: Annotated[object, Refused("text that fits before a suffix", unless=("",))] = None
    best_of: Annotated[object, Refused("the best of several answers", unless=(1,))] = None

    @model_validator(mode="after")
    def _echo_without_logprobs(self) -> CompletionBody:
        if self.echo and self.logprobs is not None:
            raise unsupported("the prompt's log probabilities (with logprobs)", "echo")
        return self
