"""The bodies of `/v1/messages` and `/v1/messages/count_tokens`: every field, its type and its bounds.

Fields are those of https://platform.claude.com/docs/en/api/messages, beta ones among them. A description
ends up in the tables of docs/api.md.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from llmrun.api.anthropic.blocks import CACHED, CacheControl, Texts
from llmrun.api.anthropic.output import OutputConfig, OutputFormatBody, ThinkingConfig
from llmrun.api.anthropic.tools import ToolBody, ToolChoiceBody
from llmrun.api.anthropic.turns import MessageBody, check_results
from llmrun.api.bounds import INT32, MAX_MESSAGES, MAX_TOOLS, StopList
from llmrun.api.options import OVERFLOW, within
from llmrun.api.schema import Body, Ignored, Refused, wrong
from llmrun.types import OutputFormat, Overflow, Thinking

HERE = Ignored("there is one machine and one speed")


class Metadata(Body):
    user_id: Annotated[str | None, Ignored("names the caller")] = None


class Conversation(Body):
    """What a prompt is made of, and what else both routes take."""

    model: Annotated[str, Field(min_length=1, description="a name that `llmrun list` shows")]
    messages: Annotated[
        list[MessageBody],
        Field(
            min_length=1,
            max_length=MAX_MESSAGES,
            description="where the last one is the assistant's, the answer goes on from it",
        ),
    ]
    system: Annotated[Texts | None, Field(description="a string or text blocks")] = None
    tools: Annotated[
        list[ToolBody] | None, Field(max_length=MAX_TOOLS, description="what the model may call")
    ] = None
    tool_choice: Annotated[ToolChoiceBody | None, Field(description="whether it must call; with `tools`")] = (
        None
    )
    thinking: Annotated[
        ThinkingConfig | None, Field(description="reasoning before the answer; default: as the model has it")
    ] = None
    output_config: Annotated[OutputConfig | None, Field(description="effort, and format of the answer")] = (
        None
    )
    output_format: Annotated[
        OutputFormatBody | None, Field(description="the older name of `output_config.format`")
    ] = None
    cache_control: Annotated[CacheControl, CACHED] = None
    context_overflow: Annotated[Overflow | None, Field(description=OVERFLOW)] = None
    context_management: Annotated[
        dict[str, object] | None, Ignored("nothing is taken out; the reply says so in `applied_edits`")
    ] = None
    speed: Annotated[Literal["standard", "fast"] | None, HERE] = None
    user_profile_id: Annotated[str | None, Ignored("names the caller")] = None
    workspace_id: Annotated[str | None, Ignored("names the caller")] = None
    billing_policy: Annotated[object, Ignored("nothing is charged")] = None
    mcp_servers: Annotated[object, Refused("tools of MCP servers", unless=([],))] = None
    compaction: Annotated[object, Refused("a conversation that is made shorter")] = None

    @property
    def said_of_thinking(self) -> Thinking | None:
        """What the fields on it say together; None: nothing."""
        effort = self.output_config.level() if self.output_config else None
        if self.thinking is None:
            return Thinking(effort=effort, wish=True) if effort else None
        return self.thinking.thinking(effort)

    def answer_format(self) -> OutputFormat | None:
        """What the answer must look like; None: free text."""
        if self.output_format:
            return self.output_format.output_format("output_format.schema")
        wanted = self.output_config.format if self.output_config else None
        return wanted.output_format("output_config.format.schema") if wanted else None

    @model_validator(mode="after")
    def _rules_between_fields(self) -> Conversation:
        if self.tool_choice and not self.tools:
            raise wrong("is only allowed with tools", "tool_choice")
        if self.output_format and self.output_config and self.output_config.format:
            raise wrong("is not allowed beside output_config.format", "output_format")
        check_results(self.messages)
        return self


class CountBody(Conversation):
    """A conversation whose tokens are counted."""


class MessagesBody(Conversation):
    max_tokens: Annotated[
        int, Field(ge=0, le=INT32, description="thinking counts; 0 computes the prompt and writes nothing")
    ]
    stop_sequences: Annotated[StopList | None, Field(description="texts that end the answer, none empty")] = (
        None
    )
    stream: Annotated[bool | None, Field(description="server-sent events")] = None
    temperature: Annotated[
        float | None,
        Field(ge=0, le=1, description="0 takes the likeliest token; default: the model's, else 0.8"),
    ] = None
    top_p: Annotated[float | None, Field(ge=0, le=1, description="default: the model's, else 0.95")] = None
    top_k: Annotated[int | None, Field(ge=0, le=INT32, description="0 keeps all")] = None
    time_limit: Annotated[
        float | None,
        within("time_limit", "llmrun's; seconds, then the answer ends as it is, with `max_tokens` as reason"),
    ] = None
    metadata: Annotated[Metadata | None, Field(description="notes of the caller")] = None
    service_tier: Annotated[Literal["auto", "standard_only"] | None, Ignored("there is one tier")] = None
    inference_geo: Annotated[str | None, HERE] = None
    diagnostics: Annotated[dict[str, object] | None, Ignored("what the cache missed is not told")] = None
    fallback_credit_token: Annotated[object, Ignored("nothing is charged")] = None
    fallbacks: Annotated[object, Refused("another model where this one fails", unless=([],))] = None
    container: Annotated[object, Refused("a container to run code in")] = None
    thread: Annotated[object, Refused("a conversation that the server keeps")] = None

    @property
    def shows_thinking(self) -> bool:
        """Whether the text of the model's thinking is sent."""
        return self.thinking is None or self.thinking.display != "omitted"

    @model_validator(mode="after")
    def _budget_leaves_an_answer(self) -> MessagesBody:
        budget = self.thinking and self.thinking.budget_tokens
        if budget and budget >= self.max_tokens:
            raise wrong(f"is {budget}, not less than max_tokens, {self.max_tokens}", "thinking.budget_tokens")
        return self
