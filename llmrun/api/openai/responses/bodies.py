"""The body of `/v1/responses`: every field, its type and its bounds."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from llmrun.api.bounds import INT32, MAX_TOOLS
from llmrun.api.openai.response_format import JsonSchema
from llmrun.api.openai.responses.items import Item, listed
from llmrun.api.openai.sampling import Generation
from llmrun.api.openai.thinking import EFFORTS, Effort
from llmrun.api.openai.toolbox import FunctionName, spelt_out
from llmrun.api.openai.tools import Function
from llmrun.api.schema import Body, Ignored, Refused, unsupported, wrong
from llmrun.api.tagged import tagged
from llmrun.api.toolbox import Choice
from llmrun.types import OutputFormat

MAX_ITEMS = 10_000  # checking one costs tens of microseconds

_REFUSED_TOOLS = {
    "custom": "a tool that takes free text",
    "namespace": "a namespace of tools",
    "mcp": "tools of a remote server",
    **dict.fromkeys(
        (
            *("web_search", "web_search_preview", "web_search_2025_08_26", "web_search_preview_2025_03_11"),
            *("file_search", "code_interpreter", "image_generation", "computer", "computer_use"),
            *("computer_use_preview", "local_shell", "shell", "apply_patch", "tool_search"),
            "programmatic_tool_calling",
        ),
        "a tool that OpenAI's servers run",
    ),
}


class FunctionTool(Function):
    type: Annotated[Literal["function"], Field(description="other types of tool are refused")]
    defer_loading: Annotated[object, Refused("a tool that is found by search", unless=(False,))] = None
    allowed_callers: Annotated[object, Refused("tools called by programs", unless=(["direct"],))] = None
    output_schema: Annotated[object, Ignored("the model is not told of it")] = None
    is_async: Annotated[
        object, Field(alias="async"), Refused("a tool that nobody waits for", unless=(False,))
    ] = None


class NamedTool(Body):
    type: Annotated[Literal["function"], Field(description="other types of tool are refused")]
    name: Annotated[FunctionName, Field(description="one of `tools`")]


class ToolChoiceBody(Body):
    type: Annotated[
        Literal["auto", "none", "required", "function", "allowed_tools"],
        Field(description="`auto`, `none`, `required` are also written alone, as strings"),
    ]
    name: Annotated[FunctionName | None, Field(description="with type `function`: the one to call")] = None
    mode: Annotated[Literal["auto", "required"] | None, Field(description="with type `allowed_tools`")] = None
    tools: Annotated[
        list[NamedTool] | None,
        Field(min_length=1, max_length=MAX_TOOLS, description="with type `allowed_tools`: those it sees"),
    ] = None

    @model_validator(mode="after")
    def _fields_of_the_type(self) -> ToolChoiceBody:
        for field, kind in (("name", "function"), ("mode", "allowed_tools"), ("tools", "allowed_tools")):
            given = getattr(self, field) is not None
            if given != (self.type == kind):
                raise wrong(f"is only allowed with type {kind}" if given else "is missing", field)
        return self

    def choice(self) -> Choice:
        """The same without its shape."""
        if self.type == "function":
            assert self.name is not None
            return Choice("required", (("name", self.name),), one=True)
        if self.type == "allowed_tools":
            assert self.mode is not None
            assert self.tools is not None
            named = tuple((f"tools.{number}.name", tool.name) for number, tool in enumerate(self.tools))
            return Choice(self.mode, named)
        return Choice(self.type)


def _hosted_choice(value: object) -> object:
    kind = value.get("type") if isinstance(value, dict) else None
    if isinstance(kind, str) and kind in _REFUSED_TOOLS:
        raise unsupported(_REFUSED_TOOLS[kind], "type", hint="choose a function")
    return value


class PlainText(Body):
    type: Annotated[Literal["text"], Field(description="free text")]


class JsonObject(Body):
    type: Annotated[Literal["json_object"], Field(description="any JSON object")]


class JsonSchemaFormat(JsonSchema):
    type: Annotated[Literal["json_schema"], Field(description="a JSON value that validates")]


class TextConfig(Body):
    format: Annotated[
        Annotated[
            PlainText | JsonObject | JsonSchemaFormat,
            Field(discriminator="type"),
            tagged({"text", "json_object", "json_schema"}, {"grammar": "a grammar", "python": "Python"}),
        ]
        | None,
        Field(description="what the answer must look like"),
    ] = None
    verbosity: Annotated[object, Refused("control of the answer's length", unless=("medium",))] = None


class ReasoningConfig(Body):
    effort: Annotated[
        Effort | None,
        Field(description=EFFORTS),
    ] = None
    summary: Annotated[
        Literal["auto", "concise", "detailed"] | None, Ignored("reasoning is shown whole, as `content`")
    ] = None
    generate_summary: Annotated[
        Literal["auto", "concise", "detailed"] | None, Ignored("the older name of `summary`")
    ] = None
    context: Annotated[
        object, Refused("a choice of the earlier reasoning that the model sees", unless=("auto",))
    ] = None
    mode: Annotated[object, Refused("another way to reason", unless=("standard",))] = None


LOGPROBS = "message.output_text.logprobs"
ENCRYPTED = "reasoning.encrypted_content"
"""Agents that keep no responses here ask for it, to send reasoning back: that comes as plain text anyway."""


def _included(value: object) -> object:
    for number, item in enumerate(value if isinstance(value, list) else ()):
        if isinstance(item, str) and item not in (LOGPROBS, ENCRYPTED):
            raise unsupported(f"{item[:64]!r} in the output", f"{number}", hint="leave it out")
    return value


class ResponsesBody(Generation):
    input: Annotated[
        list[Item],
        Field(min_length=1, max_length=MAX_ITEMS, description="text, or a list of items"),
        BeforeValidator(listed),
    ]
    instructions: Annotated[str | None, Field(description="a system message in front; not kept")] = None
    previous_response_id: Annotated[
        str | None, Field(min_length=1, description="the conversation goes on from a stored response")
    ] = None
    store: Annotated[
        bool | None, Field(description="false: the response cannot be gone on from, nor got again")
    ] = None
    max_output_tokens: Annotated[
        int | None, Field(ge=1, le=INT32, description="default: until the model ends or the context is full")
    ] = None
    text: Annotated[TextConfig | None, Field(description="the form of the answer")] = None
    tools: Annotated[
        list[Annotated[FunctionTool, tagged({"function"}, _REFUSED_TOOLS)]] | None,
        Field(max_length=MAX_TOOLS, description="functions that the model may call"),
    ] = None
    tool_choice: Annotated[
        ToolChoiceBody | None,
        BeforeValidator(_hosted_choice),
        BeforeValidator(spelt_out),
        Field(description="`auto` (the default), `none`, `required`, one function, or the allowed ones"),
    ] = None
    parallel_tool_calls: Annotated[bool | None, Field(description="false: one call at most in an answer")] = (
        None
    )
    reasoning: Annotated[ReasoningConfig | None, Field(description="how much the model is to think")] = None
    include: Annotated[
        list[str] | None,
        BeforeValidator(_included),
        Field(
            description=f"`{LOGPROBS}`; `{ENCRYPTED}` (without effect: reasoning comes as text, which can be "
            "sent back); all else is refused"
        ),
    ] = None
    top_logprobs: Annotated[
        int | None, Field(ge=0, le=20, description=f"0 to 20, with `{LOGPROBS}` included")
    ] = None
    seed: Annotated[
        int | None, Field(ge=-1, lt=2**63, description="not OpenAI's; −1 or none: a fresh one")
    ] = None
    metadata: Annotated[dict[str, str] | None, Field(description="given back with the response")] = None
    max_tool_calls: Annotated[
        int | None, Ignored("limits tools that servers run, of which there are none")
    ] = None
    service_tier: Annotated[str | None, Ignored("there is one tier")] = None
    stream_options: Annotated[dict[str, object] | None, Ignored("no padding is sent")] = None
    prompt_cache_key: Annotated[str | None, Ignored("prompts are cached by themselves")] = None
    prompt_cache_options: Annotated[object, Ignored("prompts are cached by themselves")] = None
    prompt_cache_retention: Annotated[str | None, Ignored("prompts are cached by themselves")] = None
    safety_identifier: Annotated[str | None, Ignored("names the caller")] = None
    truncation: Annotated[
        Literal["auto", "disabled"] | None,
        Field(description="`auto` leaves out the oldest turns of a conversation that is too long"),
    ] = None
    background: Annotated[object, Refused("a response made in the background", unless=(False,))] = None
    background_options: Annotated[object, Refused("a response made in the background")] = None
    conversation: Annotated[object, Refused("a stored conversation (see `previous_response_id`)")] = None
    prompt: Annotated[object, Refused("a stored prompt")] = None
    context_management: Annotated[object, Refused("a conversation that is made shorter", unless=([],))] = None
    moderation: Annotated[object, Refused("moderation")] = None
    image: Annotated[object, Refused("image output")] = None
    access_programs: Annotated[object, Refused("a programme of OpenAI's")] = None

    @property
    def wants_logprobs(self) -> bool:
        return LOGPROBS in (self.include or ())

    def output_format(self) -> OutputFormat | None:
        """What the answer must look like; None: free text."""
        match self.text and self.text.format:
            case JsonSchemaFormat(schema_text=schema):
                field = "text.format.json_schema.schema"
                return OutputFormat(kind="json_schema", text=schema, field=field)
            case JsonObject():
                return OutputFormat(kind="json_object", field="text.format")
        return None

    @model_validator(mode="after")
    def _rules_between_fields(self) -> ResponsesBody:
        if self.top_logprobs and not self.wants_logprobs:
            raise wrong(f"is only allowed where include has {LOGPROBS}", "top_logprobs")
        return self


class InputTokensBody(ResponsesBody):
    """A response whose prompt is counted, and which is not made."""

    personality: Annotated[object, Refused("another way to speak")] = None
