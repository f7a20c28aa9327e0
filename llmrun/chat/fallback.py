"""Tools for a template that knows none: all that has to do with them becomes text in turns that it has.

Tools are described in the system's turn, calls stand in the assistant's, results in the user's. The form of
the calls is `llmrun.chat.syntax.FALLBACK`, by which the model's answer is read too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec

from llmrun.chat.conversation import tool_variables
from llmrun.chat.syntax import FALLBACK
from llmrun.types import Message, Tool

_TOOLS = """\
You can call functions. Each line between these tags describes one:
<tools>
{tools}
</tools>

To call a function, answer with its name and arguments as a JSON object between these tags:
{example}
The result comes between <tool_response> tags."""


def without_tools(messages: Sequence[Message], tools: Sequence[Tool], *, system: bool) -> list[Message]:
    """The same conversation in system, user and assistant turns without calls.

    system  whether the template has a system turn; else what it would say begins the user's first turn
    """
    plain: list[Message] = []
    results = False  # whether the newest turn holds results, and the user may go on in it
    for message in messages:
        if message.role == "tool":
            result = f"<tool_response>\n{message.content}\n</tool_response>"
            if results:
                plain[-1] = _with(plain[-1], f"{plain[-1].content}\n{result}")
            else:
                plain.append(Message(role="user", content=result))
        elif message.role == "user" and results:
            plain[-1] = _with(plain[-1], f"{plain[-1].content}\n\n{message.content}")
        else:
            plain.append(_with(message, _called(message)) if message.tool_calls else message)
        results = message.role == "tool"
    return _told(plain, _description(tools), system) if tools else plain


def _with(message: Message, content: str) -> Message:
    return msgspec.structs.replace(message, content=content, tool_calls=())


def _called(message: Message) -> str:
    calls = FALLBACK.calls
    assert calls is not None
    texts = [
        calls.before_arguments(call.name) + call.arguments + calls.after_arguments(call.name)
        for call in message.tool_calls
    ]
    before = message.content + FALLBACK.after_content if message.content else ""
    return before + calls.open + calls.separator.join(texts) + calls.close


def _description(tools: Sequence[Tool]) -> str:
    calls = FALLBACK.calls
    assert calls is not None
    example = calls.before_arguments("NAME") + "{ARGUMENTS}" + calls.after_arguments("NAME")
    lines = (json.dumps(tool["function"], ensure_ascii=False) for tool in tool_variables(tools))
    return _TOOLS.format(tools="\n".join(lines), example=calls.open + example + calls.close)


def _told(messages: list[Message], text: str, system: bool) -> list[Message]:
    """`messages` with `text` in the system's turn, or in front of what the user says."""
    for index, message in enumerate(messages):
        if message.role == "system" and index == 0 and system:
            return [_with(message, f"{message.content}\n\n{text}".lstrip()), *messages[1:]]
        if not system and message.role == "user":
            return [*messages[:index], _with(message, f"{text}\n\n{message.content}"), *messages[index + 1 :]]
    return [Message(role="system" if system else "user", content=text), *messages]
