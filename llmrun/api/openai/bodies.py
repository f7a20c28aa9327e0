"""The bodies of `/v1/chat/completions` and `/v1/completions`: every field, its type and its bounds.

OpenAI's fields are those of https://platform.openai.com/docs/api-reference. A description ends up in the
tables of docs/api.md.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator

from llmrun.api.bounds import INT32, MAX_MESSAGES, MAX_TOOLS
from llmrun.api.openai.llama_server import OfChat
from llmrun.api.openai.messages import ChatMessage
from llmrun.api.openai.prompts import Prompt, prompts
from llmrun.api.openai.sampling import MAX_CHOICES, Sampling
from llmrun.api.openai.thinking import EFFORTS, Effort
from llmrun.api.openai.tools import ToolBody, ToolChoiceField
from llmrun.api.plain import PlainObject
from llmrun.api.schema import Ignored, Refused, unsupported, wrong


class ChatBody(OfChat, Sampling):
    messages: Annotated[
        list[ChatMessage],
        Field(
            min_length=1,
            max_length=MAX_MESSAGES,
            description="where the last one is the assistant's, the answer goes on from it",
        ),
    ]
    max_completion_tokens: Annotated[
        int | None, Field(ge=1, le=INT32, description="default: until the model ends or the context is full")
    ] = None
    max_tokens: Annotated[
        int | None,
        Field(
            ge=-1,
            le=INT32,
            description="the older name of `max_completion_tokens`; 0 and −1 as in `n_predict`",
        ),
    ] = None
    logprobs: Annotated[bool | None, Field(description="log probabilities, before any sampler")] = None
    top_logprobs: Annotated[int | None, Field(ge=0, le=20, description="0 to 20, with `logprobs`")] = None
    tools: Annotated[
        list[ToolBody] | None, Field(max_length=MAX_TOOLS, description="functions that the model may call")
    ] = None
    tool_choice: Annotated[
        ToolChoiceField,
        Field(description="`auto` (the default), `none`, `required`, one function, or the allowed ones"),
    ] = None
    parallel_tool_calls: Annotated[bool | None, Field(description="false: one call at most in an answer")] = (
        None
    )
    reasoning_effort: Annotated[
        Effort | None,
        Field(description=EFFORTS),
    ] = None
    think: Annotated[
        bool | None, Field(description="Ollama's; reasoning on or off, as the template has it")
    ] = None
    chat_template_kwargs: Annotated[
        PlainObject | None, Field(description="not OpenAI's; further variables for the chat template")
    ] = None
    metadata: Annotated[dict[str, str] | None, Ignored("notes of the caller")] = None
    service_tier: Annotated[str | None, Ignored("there is one tier")] = None
    prediction: Annotated[dict[str, object] | None, Ignored("a hint for speed alone")] = None
    prompt_cache_key: Annotated[str | None, Ignored("prompts are cached by themselves")] = None
    prompt_cache_options: Annotated[object, Ignored("prompts are cached by themselves")] = None
    prompt_cache_retention: Annotated[str | None, Ignored("prompts are cached by themselves")] = None
    safety_identifier: Annotated[str | None, Ignored("names the caller")] = None
    store: Annotated[object, Refused("a stored answer", unless=(False,))] = None
    functions: Annotated[object, Refused("functions in the older form (see `tools`)", unless=([],))] = None
    function_call: Annotated[
        object, Refused("a function call in the older form (see `tool_choice`)", unless=("none", "auto"))
    ] = None
    verbosity: Annotated[object, Refused("control of the answer's length", unless=("medium",))] = None
    modalities: Annotated[object, Refused("output other than text", unless=(["text"],))] = None
    audio: Annotated[object, Refused("audio output")] = None
    web_search_options: Annotated[object, Refused("a web search")] = None
    moderation: Annotated[object, Refused("moderation")] = None

    @property
    def inlines_reasoning(self) -> bool:
        """Whether reasoning is part of the content."""
        return self.reasoning_format == "none" or bool(
            self.reasoning_format == "deepseek-legacy" and self.stream
        )

    @model_validator(mode="after")
    def _rules_between_fields(self) -> ChatBody:
        if self.top_logprobs and not self.logprobs:
            raise wrong("is only allowed with logprobs: true", "top_logprobs")
        effort = self.reasoning_effort
        if None not in (self.think, effort) and self.think == (effort == "none"):
            raise wrong(f"is {self.think} but reasoning_effort is {effort}: send one", "think")
        return self


class CompletionBody(Sampling):
    prompt: Annotated[
        tuple[Prompt, ...],
        PlainValidator(prompts),
        WithJsonSchema({"type": ["string", "array"], "items": {"type": ["string", "integer", "array"]}}),
        Field(description="text, token ids, or a list of either; choices are numbered prompt × n + i"),
    ]
    max_tokens: Annotated[
        int | None,
        Field(
            ge=-1,
            le=INT32,
            description="default, and −1: until the model ends or the context is full (OpenAI's default: 16);"
            " 0 computes the prompt and writes nothing",
        ),
    ] = None
    logprobs: Annotated[int | None, Field(ge=0, le=5, description="how many alternatives, 0 to 5")] = None
    echo: Annotated[
        bool | None, Field(description="the prompt in front; with `logprobs`, its tokens' too")
    ] = None
    suffix: Annotated[
        str | None, Field(description="text that the answer fits before, with models that can fill in")
    ] = None
    best_of: Annotated[
        int | None,
        Field(
            ge=1,
            le=MAX_CHOICES,
            description="answers to make, of which the `n` of the highest mean log probability are shown;"
            " not with `stream`",
        ),
    ] = None

    @property
    def tries(self) -> int:
        """Answers to make for each prompt."""
        return self.best_of or self.n or 1

    @model_validator(mode="after")
    def _rules_between_fields(self) -> CompletionBody:
        if self.best_of is not None and self.best_of < (self.n or 1):
            raise wrong(f"is {self.best_of}, but n is {self.n}: no fewer can be made", "best_of")
        if self.tries > (self.n or 1) and self.stream:
            raise wrong("is only allowed without stream: the best is known at the end", "best_of")
        if self.suffix and not all(isinstance(prompt, str) for prompt in self.prompt):
            raise wrong("is only allowed with prompts that are text", "suffix")
        if self.suffix and self.echo and self.logprobs is not None:
            raise unsupported("log probabilities of a prompt that is in two parts", "suffix")
        return self
