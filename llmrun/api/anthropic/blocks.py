"""The blocks that messages are made of: text, tool calls and their results, thinking."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from llmrun.api.arguments import Arguments
from llmrun.api.schema import Body, Ignored, Refused, wrong
from llmrun.api.tagged import tagged

CACHED = Ignored("prompts are cached by themselves")
CacheControl = dict[str, object] | None

SERVER_TOOL = "a tool that Anthropic's servers run"
REFUSED = {
    "image": "image input",
    "document": "document input",
    "search_result": "search results as input",
    "container_upload": "a file in a container",
    "tool_reference": "a search among tools",
    "browser_state": "the state of a browser",
    "server_tool_use": SERVER_TOOL,
    "mcp_tool_use": SERVER_TOOL,
    "mcp_tool_result": SERVER_TOOL,
    "web_search_tool_result": SERVER_TOOL,
    "web_fetch_tool_result": SERVER_TOOL,
    "code_execution_tool_result": SERVER_TOOL,
    "bash_code_execution_tool_result": SERVER_TOOL,
    "text_editor_code_execution_tool_result": SERVER_TOOL,
    "tool_search_tool_result": SERVER_TOOL,
    "advisor_tool_result": SERVER_TOOL,
    "mcp_tool_listing": SERVER_TOOL,
    "tool_addition": "tools that change within a conversation",
    "tool_removal": "tools that change within a conversation",
    "fallback": "an answer by another model",
    "compaction": "a conversation that was made shorter elsewhere",
}
"""Blocks that Anthropic knows, and what each asks for."""


class TextBlock(Body):
    type: Annotated[Literal["text"], Field(description="in messages of every role")]
    text: Annotated[str, Field(description="the text blocks of a turn are joined by newlines")]
    cache_control: Annotated[CacheControl, CACHED] = None
    citations: Annotated[object, Ignored("citations of an earlier answer")] = None


class ToolUseBlock(Body):
    type: Annotated[Literal["tool_use"], Field(description="in the assistant's messages")]
    id: Annotated[str, Field(min_length=1, description="what the result names")]
    name: Annotated[str, Field(min_length=1, description="the tool's")]
    input: Annotated[Arguments, Field(description="the arguments")]
    cache_control: Annotated[CacheControl, CACHED] = None
    caller: Annotated[object, Ignored("who made an earlier call")] = None
    toolset_name: Annotated[object, Refused("a set of tools that Anthropic defines")] = None


class ThinkingBlock(Body):
    type: Annotated[Literal["thinking"], Field(description="in the assistant's messages")]
    thinking: Annotated[str, Field(description="the template decides what of it the model sees again")]
    signature: Annotated[str | None, Ignored("it is not checked")] = None


class RedactedThinkingBlock(Body):
    type: Annotated[Literal["redacted_thinking"], Field(description="in the assistant's messages")]
    data: Annotated[str, Ignored("encrypted by another server: nobody here can read it")]


def listed(value: object) -> object:
    """Text as the one block that it is short for."""
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    if not isinstance(value, list):
        raise wrong("should be a string or a list of blocks")
    return value


Texts = Annotated[list[Annotated[TextBlock, tagged({"text"}, REFUSED)]], BeforeValidator(listed)]
"""A string, or a list of text blocks."""


class ToolResultBlock(Body):
    type: Annotated[Literal["tool_result"], Field(description="in the user's messages")]
    tool_use_id: Annotated[str, Field(description="a call in the assistant's turn before")]
    content: Annotated[Texts | None, Field(description="a string or text blocks; none: empty")] = None
    is_error: Annotated[bool | None, Field(description="the model reads `Error: ` before the content")] = None
    cache_control: Annotated[CacheControl, CACHED] = None
    toolset_name: Annotated[object, Refused("a set of tools that Anthropic defines")] = None


Block = Annotated[
    TextBlock | ToolUseBlock | ToolResultBlock | ThinkingBlock | RedactedThinkingBlock,
    Field(discriminator="type"),
    tagged({"text", "tool_use", "tool_result", "thinking", "redacted_thinking"}, REFUSED),
]
Blocks = Annotated[list[Block], BeforeValidator(listed)]
"""A string, or a list of blocks."""


def joined(blocks: list[TextBlock]) -> str:
    """Their text."""
    return "\n".join(block.text for block in blocks)
