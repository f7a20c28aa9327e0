"""A conversation that ends with the assistant's message: the answer is the rest of it. Knows no dialect."""

from __future__ import annotations

import msgspec

from llmrun.errors import INVALID_REQUEST, UNSUPPORTED_FIELD, LlmrunError
from llmrun.types import GenerateRequest


def continuing(request: GenerateRequest, *, last: str, format_field: str) -> GenerateRequest:
    """`request`, going on from its last message where that is the assistant's; a last one without a word is
    left out.

    last, format_field  the fields that hold the last message and the format, named in errors: INVALID_REQUEST
                        where the message makes calls, which want results; UNSUPPORTED_FIELD where a format is
                        asked for, which binds whole answers
    """
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
    if request.output_format is not None:
        raise LlmrunError(
            UNSUPPORTED_FIELD,
            f"{format_field} binds whole answers, and this one was begun by the last message",
            hint="leave one of them out",
            field=format_field,
        )
    return msgspec.structs.replace(request, continues=True)
