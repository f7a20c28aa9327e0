"""`tools` and `tool_choice`: what the model may call, and whether it must."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, model_validator

from llmrun.api.anthropic.blocks import CACHED, CacheControl
from llmrun.api.plain import ObjectSchema, PlainObject
from llmrun.api.schema import Body, Ignored, Refused, unsupported, wrong
from llmrun.api.toolbox import Choice
from llmrun.types import Tool


class ToolBody(Body):
    type: Annotated[
        Literal["custom"] | None,
        Field(description="`custom` or none; tools that Anthropic defines are refused"),
    ] = None
    name: Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,128}$", description="letters, digits, `_` and `-`")]
    description: Annotated[str | None, Field(description="for the model")] = None
    input_schema: Annotated[ObjectSchema, Field(description="JSON Schema of the arguments, an object's")]
    strict: Annotated[
        bool | None, Field(description="the arguments keep to the schema also where the model need not call")
    ] = None
    input_examples: Annotated[
        list[PlainObject] | None, Field(description="the model sees them as `examples` of the schema")
    ] = None
    cache_control: Annotated[CacheControl, CACHED] = None
    eager_input_streaming: Annotated[bool | None, Ignored("arguments come as they are written")] = None
    defer_loading: Annotated[object, Refused("a tool that is looked for later", unless=(False,))] = None
    allowed_callers: Annotated[object, Refused("a call by another tool", unless=(["direct"],))] = None

    @model_validator(mode="before")
    @classmethod
    def _of_the_callers_own(cls, value: object) -> object:
        """Tools of any other type are defined by Anthropic, and most of them run on its servers."""
        kind = value.get("type") if isinstance(value, dict) else None
        if isinstance(kind, str) and kind != "custom":
            asked = f"{kind[:60]!r}, a tool that Anthropic defines"
            raise unsupported(asked, "type", hint="define a tool of your own")
        return value

    def tool(self) -> Tool:
        examples = {"examples": self.input_examples} if self.input_examples else {}
        return Tool(
            name=self.name,
            description=self.description or "",
            parameters={**self.input_schema, **examples},
            strict=bool(self.strict),
        )


class ToolChoiceBody(Body):
    type: Annotated[
        Literal["auto", "any", "tool", "none"], Field(description="`auto`, `any`, `tool` or `none`")
    ]
    name: Annotated[str | None, Field(description="with `tool`: which")] = None
    disable_parallel_tool_use: Annotated[bool | None, Field(description="at most one call a turn")] = None

    @model_validator(mode="after")
    def _name_with_tool(self) -> ToolChoiceBody:
        if (self.type == "tool") != (self.name is not None):
            raise wrong("is wanted with type tool, and only there", "name")
        return self

    def choice(self) -> Choice:
        """The same without its shape."""
        if self.name is not None:
            return Choice("required", (("name", self.name),), one=True)
        return Choice("required" if self.type == "any" else "none" if self.type == "none" else "auto")


def tools_of(body: Sequence[ToolBody] | None) -> list[tuple[str, Tool]]:
    """The tools, each with the field that names it."""
    return [(f"tools.{number}.name", tool.tool()) for number, tool in enumerate(body or ())]
