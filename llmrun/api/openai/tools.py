"""`tools` and `tool_choice` of chat completions: their shapes, and what they mean in the daemon's words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from llmrun.api.bounds import MAX_TOOLS
from llmrun.api.openai.toolbox import FunctionName, spelt_out
from llmrun.api.plain import ObjectSchema
from llmrun.api.schema import Body, Refused, wrong
from llmrun.api.toolbox import Choice
from llmrun.types import Tool


class Function(Body):
    name: Annotated[FunctionName, Field(description="letters, digits, `_` and `-`, at most 64")]
    description: Annotated[str | None, Field(description="the model reads it")] = None
    parameters: Annotated[
        ObjectSchema | None, Field(description="a JSON Schema of type object; none: no arguments")
    ] = None
    strict: Annotated[
        bool | None, Field(description="arguments keep to the schema also where the model calls by choice")
    ] = None

    def tool(self) -> Tool:
        return Tool(
            name=self.name,
            description=self.description or "",
            parameters=self.parameters or {},
            strict=bool(self.strict),
        )


class ToolBody(Body):
    type: Annotated[Literal["function"], Field(description="other types of tool are refused")]
    function: Annotated[Function, Field(description="what may be called")]
    custom: Annotated[object, Refused("a tool that takes free text")] = None


class NamedFunction(Body):
    name: Annotated[FunctionName, Field(description="one of `tools`")]


class AllowedTool(Body):
    type: Annotated[Literal["function"], Field(description="other types of tool are refused")]
    function: Annotated[NamedFunction, Field(description="one of `tools`")]


class AllowedTools(Body):
    mode: Annotated[Literal["auto", "required"], Field(description="whether one of them must be called")]
    tools: Annotated[
        list[AllowedTool], Field(min_length=1, max_length=MAX_TOOLS, description="the model sees these alone")
    ]


class ToolChoiceBody(Body):
    type: Annotated[
        Literal["auto", "none", "required", "function", "allowed_tools"],
        Field(description="`auto`, `none`, `required` are also written alone, as strings"),
    ]
    function: Annotated[NamedFunction | None, Field(description="with type `function`: the one to call")] = (
        None
    )
    allowed_tools: Annotated[AllowedTools | None, Field(description="with type `allowed_tools`")] = None
    custom: Annotated[object, Refused("a tool that takes free text")] = None

    @model_validator(mode="after")
    def _fields_of_the_type(self) -> ToolChoiceBody:
        for name in ("function", "allowed_tools"):
            given = getattr(self, name) is not None
            if given != (self.type == name):
                raise wrong(f"is only allowed with type {name}" if given else "is missing", name)
        return self

    def choice(self) -> Choice:
        """The same without its shape."""
        if self.type == "function":
            assert self.function is not None
            return Choice("required", (("function.name", self.function.name),), one=True)
        if self.type == "allowed_tools":
            assert self.allowed_tools is not None
            names = [tool.function.name for tool in self.allowed_tools.tools]
            fields = (f"allowed_tools.tools.{number}.function.name" for number in range(len(names)))
            return Choice(self.allowed_tools.mode, tuple(zip(fields, names, strict=True)))
        return Choice(self.type)


ToolChoiceField = Annotated[ToolChoiceBody | None, BeforeValidator(spelt_out)]


def tools_of(body: Sequence[ToolBody] | None) -> list[tuple[str, Tool]]:
    """The tools, each with the field that names it."""
    return [(f"tools.{number}.function.name", tool.function.tool()) for number, tool in enumerate(body or ())]
