"""From a body of `/v1/responses`, and the conversation it goes on from, to the request."""

from __future__ import annotations

from collections.abc import Sequence

from llmrun.api.continuing import continuing
from llmrun.api.openai.responses.bodies import ResponsesBody
from llmrun.api.openai.responses.items import turns
from llmrun.api.openai.thinking import thinking
from llmrun.api.options import options_of
from llmrun.api.toolbox import Choice, toolbox
from llmrun.types import GenerateRequest, Message


def conversation(body: ResponsesBody, earlier: Sequence[Message]) -> tuple[Message, ...]:
    """The turns of the stored response and those of the body, without `instructions`, which are not kept."""
    return (*earlier, *turns(body.input, earlier))


def to_request(body: ResponsesBody, messages: tuple[Message, ...], request_id: str) -> GenerateRequest:
    """The request for the next turn of `messages`. LlmrunError where these or the tools do not fit."""
    choice = body.tool_choice.choice() if body.tool_choice else Choice()
    named = [(f"tools.{number}.name", tool.tool()) for number, tool in enumerate(body.tools or ())]
    tools, tool_choice = toolbox(named, choice, body.parallel_tool_calls)
    if body.instructions:
        messages = (Message(role="system", content=body.instructions), *messages)
    request = GenerateRequest(
        id=request_id,
        model=body.model,
        client=body.user or "",
        priority=body.priority or 0,
        overflow=body.context_overflow or ("shift" if body.truncation == "auto" else "error"),
        messages=messages,
        options=options_of(body, max_tokens=body.max_output_tokens, stop=None, ctx=body.ctx),
        logprobs=(body.top_logprobs or 0) if body.wants_logprobs else None,
        output_format=body.output_format(),
        tools=tools,
        tool_choice=tool_choice,
        thinking=thinking(body.reasoning.effort if body.reasoning else None, field="reasoning.effort"),
    )
    return continuing(request, last="input")
