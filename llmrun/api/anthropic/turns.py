"""A conversation of messages and blocks, to the turns that a chat template knows. Pure.

Consecutive messages of one role are one turn. What a turn of the user holds of tool results becomes turns
of the tool's, in the order of the blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Annotated, Literal

from pydantic import Field, model_validator

from llmrun.api.anthropic.blocks import (
    Block,
    Blocks,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    joined,
)
from llmrun.api.schema import Body, Refused, wrong
from llmrun.types import Message, ToolCall

ERROR = "Error: "
"""In front of the result of a call that failed: chat templates have no other place for it."""
BILLING = "x-anthropic-billing-header:"
"""A coding agent's first system block, new in each request, which Anthropic's servers do not show to the
model either; in front of a prompt it would keep all of it from being found in the cache."""

_ONLY = {
    "tool_result": "user",
    "tool_use": "assistant",
    "thinking": "assistant",
    "redacted_thinking": "assistant",
}


class MessageBody(Body):
    role: Annotated[
        Literal["user", "assistant", "system"], Field(description="`user`, `assistant` or `system`")
    ]
    content: Annotated[Blocks, Field(min_length=1, description="a string, or a list of blocks")]
    output_config: Annotated[object, Refused("other settings in the middle of a conversation")] = None
    clear_at: Annotated[
        object, Refused("a message that the model no longer sees later", unless=("never",))
    ] = None

    @model_validator(mode="after")
    def _blocks_of_the_role(self) -> MessageBody:
        for number, block in enumerate(self.content):
            if (role := _ONLY.get(block.type, self.role)) != self.role:
                raise wrong(
                    f"is {block.type!r}, which only messages of the {role}'s hold", f"content.{number}.type"
                )
        return self


def check_results(messages: Sequence[MessageBody]) -> None:
    """Raise the error of a tool result that answers no call of the turn before, or of a call without one."""
    open_calls: dict[str, str] = {}
    before = ""
    for number, message in enumerate(messages):
        if message.role == "assistant" and before != "assistant":
            _none_open(open_calls)
        for place, block in enumerate(message.content):
            path = f"messages.{number}.content.{place}"
            if isinstance(block, ToolUseBlock):
                if block.id in open_calls:
                    raise wrong(f"is {block.id!r}, as another call's is", f"{path}.id")
                open_calls[block.id] = path
            elif isinstance(block, ToolResultBlock) and not open_calls.pop(block.tool_use_id, None):
                raise wrong(
                    f"is {block.tool_use_id!r}, which no call in the turn before has", f"{path}.tool_use_id"
                )
        before = message.role
    _none_open(open_calls)


def _none_open(calls: dict[str, str]) -> None:
    for name, path in calls.items():
        raise wrong(f"is a call, {name!r}, without a tool_result in the next message", path)


def system_text(blocks: list[TextBlock] | None) -> str:
    """The system prompt; "" where there is none."""
    return joined([block for block in blocks or () if not block.text.startswith(BILLING)])


def to_messages(messages: Sequence[MessageBody], system: str) -> tuple[Message, ...]:
    """The whole conversation, with `system` in front where it is not empty."""
    turns = [Message(role="system", content=system)] if system else []
    names: dict[str, str] = {}
    for role, group in groupby(messages, key=lambda message: message.role):
        blocks = [block for message in group for block in message.content]
        if role == "assistant":
            turns.append(_assistant(blocks))
            names.update((call.id, call.name) for call in turns[-1].tool_calls)
        elif role == "system":
            turns.append(Message(role="system", content=_text(blocks)))
        else:
            turns.extend(_user(blocks, names))
    return tuple(turns)


def _text(blocks: Sequence[Block]) -> str:
    return joined([block for block in blocks if isinstance(block, TextBlock)])


def _assistant(blocks: Sequence[Block]) -> Message:
    thoughts = [block.thinking for block in blocks if isinstance(block, ThinkingBlock)]
    calls = [
        ToolCall(name=block.name, arguments=block.input, id=block.id)
        for block in blocks
        if isinstance(block, ToolUseBlock)
    ]
    return Message(
        role="assistant",
        content=_text(blocks),
        reasoning="\n".join(thoughts) or None,
        tool_calls=tuple(calls),
    )


def _user(blocks: Sequence[Block], names: dict[str, str]) -> Iterator[Message]:
    for is_result, run in groupby(blocks, key=lambda block: isinstance(block, ToolResultBlock)):
        if not is_result:
            yield Message(role="user", content=_text(list(run)))
            continue
        for block in run:
            assert isinstance(block, ToolResultBlock)
            text = joined(block.content or [])
            yield Message(
                role="tool",
                content=ERROR + text if block.is_error else text,
                name=names.get(block.tool_use_id),
                tool_call_id=block.tool_use_id,
            )
