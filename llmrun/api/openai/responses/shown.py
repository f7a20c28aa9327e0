"""A response that has just begun: what was asked for, as it is shown back, and nothing yet of the answer."""

from __future__ import annotations

import json

from llmrun.api.oneline import Json
from llmrun.api.openai.responses.bodies import (
    FunctionTool,
    JsonObject,
    JsonSchemaFormat,
    PlainText,
    ResponsesBody,
    ToolChoiceBody,
)


def begun(response_id: str, created: int, body: ResponsesBody) -> Json:
    """`created` is in unix seconds. Null stands for what was left to the model."""
    return {
        "id": response_id,
        "object": "response",
        "created_at": created,
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": body.instructions,
        "max_output_tokens": body.max_output_tokens,
        "max_tool_calls": body.max_tool_calls,
        "metadata": body.metadata or {},
        "model": body.model,
        "output": [],
        "parallel_tool_calls": body.parallel_tool_calls is not False,
        "previous_response_id": body.previous_response_id,
        "reasoning": {"effort": body.reasoning.effort if body.reasoning else None, "summary": None},
        "service_tier": "default",
        "store": body.store is not False,
        "temperature": body.temperature,
        "text": {"format": _format(body.text.format if body.text else None), "verbosity": "medium"},
        "tool_choice": _choice(body.tool_choice),
        "tools": [_tool(tool) for tool in body.tools or ()],
        "top_logprobs": body.top_logprobs or 0,
        "top_p": body.top_p,
        "truncation": body.truncation or "disabled",
        "usage": None,
        "user": body.user,
    }


def _format(given: PlainText | JsonObject | JsonSchemaFormat | None) -> Json:
    if isinstance(given, JsonSchemaFormat):
        return {
            "type": given.type,
            "name": given.name,
            "description": given.description,
            "schema": json.loads(given.schema_text),
            "strict": True,
        }
    return {"type": given.type if given else "text"}


def _choice(given: ToolChoiceBody | None) -> object:
    if given is None:
        return "auto"
    if given.type == "function":
        return {"type": given.type, "name": given.name}
    if given.type == "allowed_tools":
        tools = [{"type": tool.type, "name": tool.name} for tool in given.tools or ()]
        return {"type": given.type, "mode": given.mode, "tools": tools}
    return given.type


def _tool(tool: FunctionTool) -> Json:
    return {
        "type": tool.type,
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": bool(tool.strict),
    }
