"""Bodies to requests: what `/v1/messages` and its count ask of the daemon. Pure."""

from __future__ import annotations

from llmrun.api.anthropic.bodies import Conversation, MessagesBody
from llmrun.api.anthropic.tools import tools_of
from llmrun.api.anthropic.turns import system_text, to_messages
from llmrun.api.continuing import continuing
from llmrun.api.toolbox import Choice, toolbox
from llmrun.types import GenerateRequest, Options


def to_request(body: Conversation, request_id: str) -> GenerateRequest:
    """The request that the body asks for. LlmrunError where its messages or tools do not fit together."""
    parallel = not (body.tool_choice and body.tool_choice.disable_parallel_tool_use)
    choice = body.tool_choice.choice() if body.tool_choice else Choice()
    tools, tool_choice = toolbox(tools_of(body.tools), choice, parallel)
    request = GenerateRequest(
        id=request_id,
        model=body.model,
        messages=to_messages(body.messages, system_text(body.system)),
        options=_options(body) if isinstance(body, MessagesBody) else Options(),
        tools=tools,
        tool_choice=tool_choice,
        thinking=body.said_of_thinking,
        output_format=body.answer_format(),
        overflow=body.context_overflow or "error",
    )
    return continuing(request, last=f"messages.{len(body.messages) - 1}")


def _options(body: MessagesBody) -> Options:
    return Options(
        temperature=body.temperature,
        top_p=body.top_p,
        top_k=body.top_k,
        max_tokens=body.max_tokens,
        stop=tuple(body.stop_sequences or ()),
        time_limit=body.time_limit,
    )
