"""What a request may say of tools: refused here, by field, before anything is rendered or compiled."""

from __future__ import annotations

import re
from collections.abc import Sequence

from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.types import GenerateRequest, Tool

MAX_TOOLS = 512
_NAME = re.compile(r"[\w.:/-]{1,128}")


def check_tools(request: GenerateRequest) -> None:
    """INVALID_REQUEST where tools or the choice among them make no sense."""
    _check_names(request.tools)
    for index, tool in enumerate(request.tools):
        if tool.parameters.get("type", "object") != "object":
            kind = tool.parameters["type"]
            raise _refused(
                f"the parameters of {tool.name!r} are of type {kind!r}, not object", f"tools.{index}"
            )
    choice = request.tool_choice
    if choice.mode == "required" and not request.tools:
        raise _refused("tool_choice wants a call, but there are no tools", "tool_choice")
    if choice.name is not None and all(tool.name != choice.name for tool in request.tools):
        raise _refused(f"tool_choice names {choice.name!r}, which is none of the tools", "tool_choice")


def _check_names(tools: Sequence[Tool]) -> None:
    if len(tools) > MAX_TOOLS:
        raise _refused(f"there are {len(tools)} tools, more than {MAX_TOOLS}", "tools")
    seen: set[str] = set()
    for index, tool in enumerate(tools):
        if not _NAME.fullmatch(tool.name):
            raise _refused(
                f"{tool.name[:100]!r} is no tool's name: 1 to 128 letters, digits and _ . : / - make one",
                f"tools.{index}.name",
            )
        if tool.name in seen:
            raise _refused(f"there are two tools of the name {tool.name!r}", f"tools.{index}.name")
        seen.add(tool.name)


def _refused(what: str, field: str) -> LlmrunError:
    return LlmrunError(INVALID_REQUEST, what, field=field)
