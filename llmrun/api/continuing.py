"""A conversation that ends with the assistant's message: the answer is the rest of it. Knows no dialect."""

from __future__ import annotations

import msgspec

from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.types import GenerateRequest


def continuing(request: GenerateRequest, *, last: str) -> GenerateRequest:
    """`request`, going on from its last message where that is the assistant's; a last one without a word is
    left out. `last` is the field that holds it: INVALID_REQUEST where it makes calls, which want results."""
    messages = request.messages or ()
    if not messages or messages[-1].role != "assistant":
        return request
    message = messages[-1]
    if message.tool_calls:
        raise LlmrunError(
            INVALID_REQUEST,
            f"{last} ends with tool calls that nothing answers",
            hint="end with the calls' results",
            field=last,
        )
    if not (message.content or message.reasoning):
        return msgspec.structs.replace(request, messages=messages[:-1] or messages)
    return msgspec.structs.replace(request, continues=True)
