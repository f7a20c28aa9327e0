"""A conversation that ends with the assistant's message: the answer is the rest of it. Knows no dialect."""

from __future__ import annotations

import msgspec

from llmrun.errors import INVALID_REQUEST, UNSUPPORTED_FIELD, LlmrunError
from llmrun.types import GenerateRequest


def continuing(request: GenerateRequest) -> GenerateRequest:
    """`request`, going on from its last message where that is the assistant's; a last one without a word is
    left out. LlmrunError where it calls tools, whose results are missing, or where a format is wanted, which
    can bind whole answers alone."""
    messages = request.messages or ()
    if not messages or messages[-1].role != "assistant":
        return request
    last = messages[-1]
    if last.tool_calls:
        field = f"messages.{len(messages) - 1}"
        raise LlmrunError(INVALID_REQUEST, f"{field} calls tools without results behind it", field=field)
    if not (last.content or last.reasoning):
        return msgspec.structs.replace(request, messages=messages[:-1] or messages)
    if request.output_format is not None:
        field = request.output_format.field
        raise LlmrunError(
            UNSUPPORTED_FIELD,
            f"{field} binds whole answers, and this one was begun by the last message",
            hint="leave one of them out",
            field=field,
        )
    return msgspec.structs.replace(request, continues=True)
