"""An error in OpenAI's shape."""

from __future__ import annotations

from llmrun.api import sse
from llmrun.api.context_numbers import context_numbers
from llmrun.api.oneline import Json
from llmrun.errors import LlmrunError


def error_body(error: LlmrunError) -> Json:
    """`{"error": …}` as OpenAI's clients read it; `details` (ours) holds the numbers of the error. Those of a
    prompt that is too long are there for llama-server's web page too."""
    inner: Json = {
        "message": str(error),
        "type": _type(error.kind.status),
        "param": error.field,
        "code": error.kind.code,
        **context_numbers(error),
    }
    if error.details:
        inner["details"] = error.details
    return {"error": inner}


def _type(status: int) -> str:
    if status == 429:
        return "rate_limit_error"
    return "invalid_request_error" if status < 500 else "server_error"


def error_event(error: LlmrunError) -> bytes:
    """The same as the last event of a stream that broke; no `[DONE]` follows."""
    return sse.event(error_body(error))
