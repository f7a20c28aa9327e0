"""The messages of a chat completion: their shapes, the rules between them, and the conversation they make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from llmrun.api.bounds import MAX_TOOLS
from llmrun.api.plain import ObjectText
from llmrun.api.schema import Body, Ignored, Refused, unsupported, wrong
from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.types import Message, ToolCall


class TextPart(Body):
    type: Annotated[Literal["text"], Field(description="other types of part are refused")]
    text: Annotated[str, Field(description="parts are joined by newlines")]
    image_url: Annotated[object, Refused("image input")] = None
    input_audio: Annotated[object, Refused("audio input")] = None
    file: Annotated[object, Refused("file input")] = None
    refusal: Annotated[object, Refused("a refusal in the conversation")] = None
    prompt_cache_breakpoint: Annotated[object, Ignored("prompts are cached by themselves")] = None
    cache_control: Annotated[object, Ignored("Anthropic's; prompts are cached by themselves")] = None


def _parts(value: object) -> object:
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    if value is not None and not isinstance(value, list):
        raise wrong("should be a string or a list of text parts")
    return value


def _role(value: object) -> object:
    if value == "function":
        raise unsupported("a function's result in the older form", hint="send tools, and the role tool")
    return value


class CalledFunction(Body):
    name: Annotated[str, Field(min_length=1, description="what was called")]
    arguments: Annotated[ObjectText, Field(description="the JSON text of an object")]
    parsed_arguments: Annotated[object, Ignored("what the official client read out of the arguments")] = None


class CallBody(Body):
    id: Annotated[str, Field(min_length=1, description="what its result names as `tool_call_id`")]
    type: Annotated[Literal["function"], Field(description="other types of call are refused")]
    function: Annotated[CalledFunction, Field(description="the call itself")]
    index: Annotated[int | None, Ignored("the place in a stream")] = None
    custom: Annotated[object, Refused("a call of a tool that takes free text")] = None

    def call(self) -> ToolCall:
        return ToolCall(name=self.function.name, arguments=self.function.arguments, id=self.id)


class ChatMessage(Body):
    role: Annotated[
        Literal["system", "developer", "user", "assistant", "tool"],
        BeforeValidator(_role),
        Field(description="`system`, `developer` (the same), `user`, `assistant`, `tool`"),
    ]
    content: Annotated[
        Annotated[list[TextPart], Field(min_length=1)] | None,
        BeforeValidator(_parts),
        Field(description="required unless there are calls; a string, or a list of parts"),
    ] = None
    name: Annotated[str | None, Field(description="for templates that use it")] = None
    tool_calls: Annotated[
        list[CallBody] | None, Field(max_length=MAX_TOOLS, description="the assistant's calls")
    ] = None
    tool_call_id: Annotated[
        str | None, Field(description="with role `tool`: the earlier call that it answers")
    ] = None
    reasoning_content: Annotated[
        str | None, Field(description="not OpenAI's; what the assistant thought before it answered")
    ] = None
    refusal: Annotated[object, Refused("a refusal in the conversation", unless=("",))] = None
    function_call: Annotated[object, Refused("a function call in the older form (see `tool_calls`)")] = None
    audio: Annotated[object, Refused("audio in the conversation")] = None
    stream: Annotated[object, Ignored("llama.cpp's server-bench.py writes it here")] = None
    annotations: Annotated[object, Ignored("citations of an earlier answer")] = None
    parsed: Annotated[object, Ignored("what the official client read out of the content")] = None

    @model_validator(mode="after")
    def _fields_of_the_role(self) -> ChatMessage:
        for name, role in (("tool_calls", "assistant"), ("reasoning_content", "assistant")):
            if getattr(self, name) and self.role != role:
                raise wrong(f"is only allowed with role {role}", name)
        if self.role == "tool" and not self.tool_call_id:
            raise wrong("is missing", "tool_call_id")
        if self.role != "tool" and self.tool_call_id:
            raise wrong("is only allowed with role tool", "tool_call_id")
        if self.content is None and not self.tool_calls:
            raise wrong("is missing", "content")
        return self

    def message(self) -> Message:
        """The same in the daemon's words."""
        return Message(
            role="system" if self.role == "developer" else self.role,
            content="\n".join(part.text for part in self.content or ()),
            name=self.name,
            reasoning=self.reasoning_content,
            tool_calls=tuple(call.call() for call in self.tool_calls or ()),
            tool_call_id=self.tool_call_id,
        )


def conversation(messages: Sequence[ChatMessage]) -> tuple[Message, ...]:
    """The turns, in order. INVALID_REQUEST where a tool's result answers no call of the turn before, or one
    that has its result: a model would take it for another call's."""
    waiting: list[str] = []
    for number, message in enumerate(messages):
        if message.tool_call_id is None:
            waiting = [call.id for call in message.tool_calls or ()]
        elif message.tool_call_id in waiting:
            waiting.remove(message.tool_call_id)
        else:
            field = f"messages.{number}.tool_call_id"
            raise LlmrunError(
                INVALID_REQUEST,
                f"{field} is {message.tool_call_id[:64]!r}, which is the id of no tool call before it that "
                "waits for its result",
                hint="put it behind the assistant's message with the call",
                field=field,
            )
    return tuple(message.message() for message in messages)
