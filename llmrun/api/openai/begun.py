"""Whether a conversation ends with an answer that the caller began, so that the model goes on from it."""

from __future__ import annotations

from collections.abc import Sequence

from llmrun.errors import INVALID_REQUEST, UNSUPPORTED_FIELD, LlmrunError
from llmrun.types import Message, OutputFormat


def continues(
    messages: Sequence[Message], output_format: OutputFormat | None, *, last: str, format_field: str
) -> bool:
    """True where the last turn is the assistant's.

    last, format_field  the fields that hold the last turn and the format, named in errors: INVALID_REQUEST
                        where the turn makes calls, which want results; UNSUPPORTED_FIELD where a format is
                        asked for, which binds whole answers
    """
    if messages[-1].role != "assistant":
        return False
    if messages[-1].tool_calls:
        raise LlmrunError(
            INVALID_REQUEST,
            f"{last} ends with tool calls that nothing answers",
            hint="end with the calls' results",
            field=last,
        )
    if output_format is not None:
        raise LlmrunError(
            UNSUPPORTED_FIELD,
            f"{format_field} binds whole answers, and this one was begun by the last message",
            hint="leave one of them out",
            field=format_field,
        )
    return True
