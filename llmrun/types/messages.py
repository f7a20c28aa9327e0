"""A conversation: its turns, the tools the model may call, and how it is to think."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Role = Literal["system", "user", "assistant", "tool"]
Effort = Literal["minimal", "low", "medium", "high", "xhigh", "max"]


class ToolCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call that an assistant's turn made. `arguments` is the JSON text of an object; `id` may be
    empty where a dialect has none."""

    name: str
    arguments: str = "{}"
    id: str = ""


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One turn of a conversation. `content` is text; parts were joined by the dialect, in order.

    reasoning     what the assistant thought before it answered
    tool_calls    the calls of an assistant's turn, in order
    tool_call_id  in a tool's turn: the call that it answers
    """

    role: Role
    content: str = ""
    name: str | None = None
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


class Tool(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A function that the model may call. `parameters` is the JSON Schema of its arguments, an object's;
    `strict`: the arguments must keep to it also where the model calls by its own choice."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}
    strict: bool = False


class ToolChoice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """mode      auto: the model decides; none: no call, though it sees the tools; required: one at least
    name      with `required`: the one tool to call
    parallel  whether one turn may call more than once
    """

    mode: Literal["auto", "none", "required"] = "auto"
    name: str | None = None
    parallel: bool = True


class Thinking(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a request says of the model's reasoning; None leaves it as the model has it.

    enabled  on or off, by the template's own switch
    effort   for templates that know one
    budget   tokens of reasoning at most; then it is closed and the answer begins
    wish     what the model's template cannot be told is passed over; else it is an error
    field    the request field it came from, named in errors
    """

    enabled: bool | None = None
    effort: Effort | None = None
    budget: int | None = None
    wish: bool = False
    field: str = "thinking"
