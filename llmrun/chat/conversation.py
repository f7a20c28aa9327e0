"""Messages and tools to the variables that chat templates take, as transformers names and shapes them.

Knows no template and no vocabulary.
"""

from __future__ import annotations

import hashlib
import json
import string
from collections.abc import Callable, Sequence, Set
from typing import Any

import msgspec

from llmrun.types import Message, Tool, ToolCall

Variables = dict[str, Any]
Naming = Callable[[ToolCall, int], str]
"""What a template shall see as the id of a call, which is the conversation's so-manyth."""

_LETTERS = string.ascii_letters + string.digits


def tool_variables(tools: Sequence[Tool]) -> list[Variables]:
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters or {"type": "object", "properties": {}},
            },
        }
        for tool in tools
    ]


NO_RESULT = "There is no result: this call was not completed."
"""Stands for the result of a call that got none, as agents write it of a call that was interrupted."""


def with_results(messages: Sequence[Message]) -> list[Message]:
    """The same, behind each turn that calls tools a result for each call, in the order of the calls.

    Clients may send results as they come, and none for a call that was interrupted; where a template shows no
    ids, a model tells by their places which is whose. Calls that end the conversation stay open.
    """
    later = {message.tool_call_id for message in messages if message.tool_call_id}
    found: list[Message] = []
    results: list[Message] = []
    calls: tuple[ToolCall, ...] = ()
    for message in messages:
        if message.role == "tool":
            results.append(message)
            continue
        found += _by_call(results, calls, later)
        results, calls = [], message.tool_calls
        found.append(message)
    return [*found, *(_by_call(results, calls, later) if results else ())]


def _by_call(results: list[Message], calls: Sequence[ToolCall], later: Set[str]) -> list[Message]:
    """`later`: the ids of calls that are answered, here or further on. Results of which one answers none of
    the calls stay as they are."""
    made = [(call.id, str(place), call.name) for place, call in enumerate(calls)]
    placed = []
    for result in results:
        answered = _answered(result, made)
        if answered is None:
            return results
        made.remove(answered)
        placed.append((int(answered[1]), result))
    for id, place, name in made:
        if id not in later:
            missing = Message(role="tool", content=NO_RESULT, name=name, tool_call_id=id or None)
            placed.append((int(place), missing))
    return [result for _, result in sorted(placed, key=lambda pair: pair[0])]


def message_variables(
    messages: Sequence[Message], naming: Naming, *, arguments_text: bool = False
) -> list[Variables]:
    """One a message. Calls have an id each, and each tool's turn the id and name of the call that it answers:
    the named one, or the first that has no answer yet.

    arguments_text  arguments as JSON text, not as an object
    """
    made: list[tuple[str, str, str]] = []  # given id, shown id, name; of calls without an answer
    count = 0
    found = []
    for message in messages:
        fields: Variables = {"role": message.role, "content": message.content, "name": message.name}
        if message.reasoning is not None:
            fields["reasoning_content"] = message.reasoning
        if message.tool_calls:
            fields["tool_calls"] = calls = []
            for call in message.tool_calls:
                shown = naming(call, count)
                count += 1
                made.append((call.id, shown, call.name))
                arguments = call.arguments if arguments_text else _parsed(call.arguments)
                calls.append(
                    {
                        "id": shown,
                        "type": "function",
                        "function": {"name": call.name, "arguments": arguments},
                    }
                )
        if message.role == "tool":
            answered = _answered(message, made)
            if answered:
                made.remove(answered)
                fields["name"] = message.name or answered[2]
            fields["tool_call_id"] = answered[1] if answered else message.tool_call_id
        found.append(fields)
    return found


def _answered(message: Message, made: list[tuple[str, str, str]]) -> tuple[str, str, str] | None:
    wanted = [call for call in made if message.tool_call_id and call[0] == message.tool_call_id]
    if not wanted and not message.tool_call_id:
        wanted = [call for call in made if message.name in (None, call[2])]
    return wanted[0] if wanted else None


def given_id(call: ToolCall, number: int) -> str:
    """The call's own id, or one of its place where it has none."""
    return call.id or short_id(call, number)


def short_id(call: ToolCall, number: int) -> str:
    """Nine letters or digits, which every template takes; always the same of the same id."""
    if len(call.id) == 9 and call.id.isalnum() and call.id.isascii():
        return call.id
    digest = hashlib.sha256(f"{call.id or number}".encode("utf-8", "replace")).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:9])


def named_id(call: ToolCall, number: int) -> str:
    """An id that a template can write a call by."""
    return f"functions.{call.name}:{number}"


def in_other_words(messages: Sequence[Message], word: str) -> tuple[list[str], list[Message]]:
    """The same turns with every call's name and every result another word, all beginning with `word`; those
    words, of which none is part of another."""
    words: list[str] = []

    def another() -> str:
        words.append(f"{word}{len(words)}x")
        return words[-1]

    changed = []
    for message in messages:
        calls = tuple(msgspec.structs.replace(call, name=another()) for call in message.tool_calls)
        content = another() if message.role == "tool" else message.content
        changed.append(msgspec.structs.replace(message, content=content, tool_calls=calls))
    return words, changed


def _parsed(arguments: str) -> Any:
    """The object, or the text itself where it is none."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    return value if isinstance(value, dict) else arguments
