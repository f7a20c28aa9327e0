"""Bodies to requests: what `/v1/messages` and its count ask of the daemon. Pure."""

from __future__ import annotations

from llmrun.api.anthropic.bodies import Conversation, CountBody, MessagesBody
from llmrun.api.anthropic.turns import system_text, to_messages
from llmrun.api.continuing import continuing
from llmrun.types import GenerateRequest, Options, TokenizeRequest, ToolChoice


def to_request(body: Conversation, request_id: str) -> GenerateRequest:
    """The request that the body asks for. LlmrunError where its last message cannot be gone on from."""
    request = GenerateRequest(
        id=request_id,
        model=body.model,
        messages=to_messages(body.messages, system_text(body.system)),
        options=_options(body) if isinstance(body, MessagesBody) else Options(),
        tools=tuple(tool.tool() for tool in body.tools or ()),
        tool_choice=body.tool_choice.choice() if body.tool_choice else ToolChoice(),
        thinking=body.said_of_thinking,
        output_format=body.answer_format(),
    )
    return continuing(request)


def to_count(body: CountBody, request_id: str) -> TokenizeRequest:
    """The request for the tokens of the prompt that `to_request` asks with."""
    return TokenizeRequest(id=request_id, model=body.model, prompt=to_request(body, request_id))


def _options(body: MessagesBody) -> Options:
    return Options(
        temperature=body.temperature,
        top_p=body.top_p,
        top_k=body.top_k,
        max_tokens=body.max_tokens,
        stop=tuple(body.stop_sequences or ()),
    )
