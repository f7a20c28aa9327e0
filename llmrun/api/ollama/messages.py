"""`messages` and `tools` of `/api/chat`: turns, calls, results, and what may be called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, model_validator

from llmrun.api.arguments import Arguments
from llmrun.api.plain import ObjectSchema
from llmrun.api.schema import Body, Ignored, Refused, wrong
from llmrun.types import Message, Tool, ToolCall

ONE_TYPE = Ignored("there is one type")
FunctionType = Literal["function"] | None


class CalledFunction(Body):
    name: Annotated[str, Field(min_length=1, description="the tool's")]
    arguments: Annotated[Arguments, Field(description="an object")]
    index: Annotated[int | None, Ignored("calls are in order")] = None


class OllamaCall(Body):
    function: Annotated[CalledFunction, Field(description="what was called")]
    id: Annotated[str | None, Field(description="for templates that use it")] = None
    type: Annotated[FunctionType, ONE_TYPE] = None

    def call(self) -> ToolCall:
        return ToolCall(name=self.function.name, arguments=self.function.arguments, id=self.id or "")


class OllamaMessage(Body):
    role: Annotated[
        Literal["system", "user", "assistant", "tool"],
        Field(description="`system`, `user`, `assistant` or `tool`"),
    ]
    content: Annotated[str | None, Field(description="none is the same as empty")] = None
    thinking: Annotated[
        str | None, Field(description="the assistant's; the template decides what the model sees of it")
    ] = None
    tool_calls: Annotated[list[OllamaCall] | None, Field(description="the assistant's, in order")] = None
    tool_name: Annotated[str | None, Field(description="the tool's: which one this is of")] = None
    tool_call_id: Annotated[str | None, Field(description="the tool's: the call that this answers")] = None
    images: Annotated[object, Refused("image input", unless=([],))] = None

    @model_validator(mode="after")
    def _fields_of_the_role(self) -> OllamaMessage:
        owners = {"thinking": "assistant", "tool_calls": "assistant"}
        owners |= {"tool_name": "tool", "tool_call_id": "tool"}
        for name, role in owners.items():
            if getattr(self, name) and self.role != role:
                raise wrong(f"is only allowed with role {role}", name)
        return self

    def message(self) -> Message:
        return Message(
            role=self.role,
            content=self.content or "",
            name=self.tool_name or None,
            reasoning=self.thinking or None,
            tool_calls=tuple(call.call() for call in self.tool_calls or ()),
            tool_call_id=self.tool_call_id or None,
        )


class OllamaFunction(Body):
    name: Annotated[str, Field(min_length=1, max_length=128, description="what calls name")]
    description: Annotated[str | None, Field(description="for the model")] = None
    parameters: Annotated[
        ObjectSchema | None,
        Field(description="JSON Schema of the arguments, an object's; none: no arguments"),
    ] = None
    strict: Annotated[
        bool | None,
        Field(description="not Ollama's; arguments keep to the schema, which calls try to anyway"),
    ] = None


class OllamaTool(Body):
    type: Annotated[FunctionType, ONE_TYPE] = None
    function: Annotated[OllamaFunction, Field(description="what the model may call")]

    def tool(self) -> Tool:
        function = self.function
        return Tool(
            name=function.name,
            description=function.description or "",
            parameters=function.parameters or {},
            strict=bool(function.strict),
        )


def tools_of(body: Sequence[OllamaTool] | None) -> list[tuple[str, Tool]]:
    """The tools, each with the field that names it."""
    return [(f"tools.{number}.function.name", tool.tool()) for number, tool in enumerate(body or ())]
