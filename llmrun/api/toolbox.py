"""What every dialect's tools come to: those that the model sees, and whether it may or must call one.

The shapes differ, the rules are one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.types import Tool, ToolChoice

Mode = Literal["auto", "none", "required"]


@dataclass(frozen=True)
class Choice:
    """A checked `tool_choice`.

    named  the tools it names, each behind the field below `tool_choice` that does; the model sees no others
    one    what is named is the one tool to call, and the model sees all
    """

    mode: Mode = "auto"
    named: tuple[tuple[str, str], ...] = ()
    one: bool = False


def toolbox(
    tools: Sequence[tuple[str, Tool]], choice: Choice, parallel: bool | None
) -> tuple[tuple[Tool, ...], ToolChoice]:
    """The tools that the model sees, and its choice; `tools`: each behind the field that names it.

    INVALID_REQUEST where two have one name, or where the choice asks for what is not among them.
    """
    known: dict[str, str] = {}
    for field, tool in tools:
        if tool.name in known:
            raise _wrong(field, f"is {tool.name!r}, as is {known[tool.name]}")
        known[tool.name] = field
    for field, named in choice.named:
        if named not in known:
            raise _wrong(f"tool_choice.{field}", f"is {named!r}, which is not among the tools")
    if choice.mode == "required" and not known:
        raise _wrong("tool_choice", "asks for a call, but there are no tools")
    names = {name for _, name in choice.named}
    seen = tuple(tool for _, tool in tools if choice.one or not names or tool.name in names)
    name = choice.named[0][1] if choice.one else None
    return seen, ToolChoice(mode=choice.mode, name=name, parallel=parallel is not False)


def _wrong(field: str, message: str) -> LlmrunError:
    return LlmrunError(INVALID_REQUEST, f"{field} {message}", field=field)
