"""The fields that the generation routes share: how tokens are chosen, and how the answer is sent.

The further sampling fields carry llama-server's names. A description ends up in docs/api.md.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from llmrun.api.bounds import INT32, Stops
from llmrun.api.llama_format import LlamaFormat
from llmrun.api.openai.llama_server import OfBothRoutes
from llmrun.api.openai.response_format import ResponseFormat
from llmrun.api.options import LlamaSampling, options_of, within
from llmrun.api.schema import Body, Ignored, wrong
from llmrun.types import Options, OutputFormat

MAX_CHOICES = 128


def _token_key(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) <= INT32):
        raise wrong("should be a token id written in digits")
    return int(text)


LogitBias = dict[
    Annotated[int, BeforeValidator(_token_key)],
    Annotated[float, Field(ge=-100, le=100)],
]


class StreamOptions(Body):
    include_usage: Annotated[
        bool | None, Field(description="a last chunk with empty `choices` and the `usage`")
    ] = None
    include_obfuscation: Annotated[bool | None, Ignored("no padding is sent")] = None


class Generation(LlamaSampling):
    """The fields of every route that generates."""

    model: Annotated[str, Field(min_length=1, description="a name that `llmrun list` shows")]
    temperature: Annotated[
        float | None,
        within("temperature", "0 takes the likeliest token; default: the model's, else 0.8"),
    ] = None
    top_p: Annotated[float | None, Field(gt=0, le=1, description="default: the model's, else 0.95")] = None
    stream: Annotated[bool | None, Field(description="server-sent events")] = None
    ctx: Annotated[
        int | None,
        Field(ge=1, le=INT32, description="not OpenAI's; tokens of context to load the model with"),
    ] = None
    user: Annotated[str | None, Field(description="callers take turns, and users of one caller too")] = None
    priority: Annotated[
        int | None, Field(ge=-100, le=100, description="vLLM's; lower begins sooner, whoever asks")
    ] = None


class Sampling(Generation, OfBothRoutes, LlamaFormat):
    """The fields that chat completions and completions share."""

    model: Annotated[
        str,
        Field(description="a name that `llmrun list` shows; needed where more than one could be meant"),
        BeforeValidator(lambda value: "" if value is None else value),
    ] = ""
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
    stream_options: Annotated[StreamOptions | None, Field(description="only with `stream`")] = None

    def options(self) -> Options:
        """What is set here, in the daemon's words."""
        return options_of(self, max_tokens=self.most_tokens, stop=self.stop, ctx=self.ctx)

    def output_format(self) -> OutputFormat | None:
        """What the answers must look like; None: free text."""
        asked = self.response_format.output_format() if self.response_format else None
        return self.llama_format() or asked

    @property
    def wants_usage(self) -> bool:
        """Whether a stream ends with a chunk of usage."""
        return bool(self.stream_options and self.stream_options.include_usage)

    @model_validator(mode="after")
    def _one_way_to_say_the_format(self) -> Sampling:
        """llama-server's clients send `json_schema` beside a `response_format` of any object."""
        asked = self.response_format.type if self.response_format else "text"
        if (self.grammar or self.json_schema is not None) and asked not in ("text", "json_object"):
            raise wrong("already says what the answer must look like: leave one out", "response_format")
        return self

    @model_validator(mode="after")
    def _stream_options_need_stream(self) -> Sampling:
        if self.stream_options is not None and not self.stream:
            raise wrong("is only allowed with stream: true", "stream_options")
        return self
