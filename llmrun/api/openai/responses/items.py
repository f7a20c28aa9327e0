"""The input items of `/v1/responses`: their shapes, and the turns they make."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from llmrun.api.plain import ObjectText
from llmrun.api.schema import Body, Ignored, Refused, wrong
from llmrun.api.tagged import tagged
from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.types import Message, ToolCall

_REFUSED_PARTS = {
    "input_image": "image input",
    "input_file": "file input",
    "input_audio": "audio input",
    "refusal": "a refusal in the conversation",
}
_HOSTED = "a tool that OpenAI's servers run"
_REFUSED_ITEMS = {
    "item_reference": "an item of an earlier response by its id",
    "custom_tool_call": "a call of a tool that takes free text",
    "custom_tool_call_output": "the result of a tool that takes free text",
    **dict.fromkeys(("compaction", "compaction_trigger"), "a conversation that was made shorter elsewhere"),
    "configuration_update": "other settings in the middle of a conversation",
    **dict.fromkeys(("additional_tools", "tool_search_call", "tool_search_output"), "a search among tools"),
    **dict.fromkeys(
        (
            *("file_search_call", "web_search_call", "code_interpreter_call", "image_generation_call"),
            *("computer_call", "computer_call_output", "local_shell_call", "local_shell_call_output"),
            *("shell_call", "shell_call_output", "apply_patch_call", "apply_patch_call_output"),
            *("mcp_call", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response"),
            *("program", "program_output"),
        ),
        _HOSTED,
    ),
}

_Status = Annotated[str | None, Ignored("how far an earlier response was")]
_Id = Annotated[str | None, Ignored("items are told apart by their place")]


class TextPart(Body):
    type: Annotated[Literal["input_text", "output_text"], Field(description="what was asked, or answered")]
    text: Annotated[str, Field(description="parts are joined by newlines")]
    annotations: Annotated[object, Ignored("citations of an earlier answer")] = None
    logprobs: Annotated[object, Ignored("of an earlier answer")] = None
    parsed: Annotated[object, Ignored("what the official client read out of the text")] = None
    prompt_cache_breakpoint: Annotated[object, Ignored("prompts are cached by themselves")] = None


def _text_parts(value: object) -> object:
    if isinstance(value, str):
        return [{"type": "input_text", "text": value}]
    if not isinstance(value, list):
        raise wrong("should be a string or a list of text parts")
    return value


Texts = Annotated[
    list[Annotated[TextPart, tagged({"input_text", "output_text"}, _REFUSED_PARTS)]],
    BeforeValidator(_text_parts),
]


class MessageItem(Body):
    type: Annotated[Literal["message"], Field(description="may be left out")]
    role: Annotated[
        Literal["system", "developer", "user", "assistant"],
        Field(description="`system`, `developer` (the same), `user`, `assistant`"),
    ]
    content: Annotated[Texts, Field(description="a string, or a list of text parts")]
    id: _Id = None
    status: _Status = None
    phase: Annotated[str | None, Ignored("a label of OpenAI's own models")] = None


class FunctionCallItem(Body):
    type: Annotated[Literal["function_call"], Field(description="a call that the assistant made")]
    call_id: Annotated[str, Field(min_length=1, description="what its output names")]
    name: Annotated[str, Field(min_length=1, description="what was called")]
    arguments: Annotated[ObjectText, Field(description="the JSON text of an object")]
    id: _Id = None
    status: _Status = None
    parsed_arguments: Annotated[object, Ignored("what the official client read out of the arguments")] = None
    namespace: Annotated[object, Refused("a namespace of tools")] = None
    caller: Annotated[object, Ignored("who made an earlier call")] = None
    was_async: Annotated[bool | None, Field(alias="async"), Ignored("how an earlier call was made")] = None
    async_: Annotated[bool | None, Ignored("the same, as the official client dumps it")] = None


class FunctionOutputItem(Body):
    type: Annotated[Literal["function_call_output"], Field(description="what a call gave")]
    call_id: Annotated[str, Field(min_length=1, description="the earlier call that it answers")]
    output: Annotated[Texts, Field(description="a string, or a list of text parts")]
    id: _Id = None
    status: _Status = None
    name: Annotated[str | None, Ignored("the call has it")] = None
    namespace: Annotated[object, Refused("a namespace of tools")] = None
    caller: Annotated[object, Ignored("who made the call")] = None


class ReasoningPart(Body):
    type: Annotated[Literal["reasoning_text"], Field(description="the text as it was thought")]
    text: Annotated[str, Field(description="parts are joined by newlines")]


class ReasoningItem(Body):
    type: Annotated[Literal["reasoning"], Field(description="what the assistant thought")]
    content: Annotated[
        list[ReasoningPart] | None, Field(description="the template decides what of it the model sees again")
    ] = None
    summary: Annotated[object, Ignored("no summaries are made")] = None
    encrypted_content: Annotated[object, Refused("reasoning that another server encrypted")] = None
    id: _Id = None
    status: _Status = None


def _typed(value: object) -> object:
    """A message may leave its type out, and so may a reference."""
    if isinstance(value, dict) and value.get("type") is None:
        kind = "message" if "role" in value else "item_reference" if "id" in value else None
        return {**value, "type": kind} if kind else value
    return value


_ITEMS = {"message", "function_call", "function_call_output", "reasoning"}
Item = Annotated[
    MessageItem | FunctionCallItem | FunctionOutputItem | ReasoningItem,
    Field(discriminator="type"),
    tagged(_ITEMS, _REFUSED_ITEMS),
    BeforeValidator(_typed),
]


def listed(value: object) -> object:
    """Text as the one item that it is short for."""
    if isinstance(value, str):
        return [{"type": "message", "role": "user", "content": value}]
    if not isinstance(value, list):
        raise wrong("should be a string or a list of items")
    return value


class _Turns:
    """Turns as they grow: reasoning, text and calls that follow one another are one turn of the assistant."""

    def __init__(self) -> None:
        self.done: list[Message] = []
        self._reasoning: list[str] = []
        self._text: list[str] | None = None
        self._calls: list[ToolCall] = []

    def add(self, message: Message) -> None:
        self.close()
        self.done.append(message)

    def reasoned(self, text: str) -> None:
        if self._text is not None or self._calls:
            self.close()
        self._reasoning.append(text)

    def said(self, text: str) -> None:
        if self._text is not None or self._calls:
            self.close()
        self._text = [text]

    def called(self, call: ToolCall) -> None:
        self._calls.append(call)

    def close(self) -> None:
        """The assistant's turn, if one is open, is complete."""
        if self._reasoning or self._text is not None or self._calls:
            self.done.append(
                Message(
                    role="assistant",
                    content="".join(self._text or ()),
                    reasoning="\n".join(self._reasoning) or None,
                    tool_calls=tuple(self._calls),
                )
            )
        self._reasoning, self._text, self._calls = [], None, []


def turns(items: Sequence[Item], earlier: Iterable[Message] = ()) -> tuple[Message, ...]:
    """The turns that the items make behind those of `earlier`. INVALID_REQUEST where an output answers no
    call before it, or one that has its output."""
    made = _Turns()
    waiting: list[str] = []
    for message in earlier:
        waiting += [call.id for call in message.tool_calls]
        if message.tool_call_id in waiting:
            waiting.remove(message.tool_call_id)
    for number, item in enumerate(items):
        match item:
            case MessageItem():
                text = "\n".join(part.text for part in item.content)
                if item.role == "assistant":
                    made.said(text)
                else:
                    made.add(Message(role="user" if item.role == "user" else "system", content=text))
            case ReasoningItem():
                made.reasoned("\n".join(part.text for part in item.content or ()))
            case FunctionCallItem():
                waiting.append(item.call_id)
                made.called(ToolCall(id=item.call_id, name=item.name, arguments=item.arguments))
            case FunctionOutputItem():
                if item.call_id not in waiting:
                    field = f"input.{number}.call_id"
                    raise LlmrunError(
                        INVALID_REQUEST,
                        f"{field} is {item.call_id[:64]!r}, which is the id of no function call before it "
                        "that waits for its output",
                        hint="put the function_call item in front",
                        field=field,
                    )
                waiting.remove(item.call_id)
                text = "\n".join(part.text for part in item.output)
                made.add(Message(role="tool", content=text, tool_call_id=item.call_id))
    made.close()
    return tuple(made.done)
