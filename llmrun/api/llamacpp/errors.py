"""An error in llama-server's shape."""

from __future__ import annotations

from llmrun.api import sse
from llmrun.api.context_numbers import context_numbers
from llmrun.api.oneline import Json
from llmrun.errors import LlmrunError

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    503: "unavailable_error",
}


def error_body(error: LlmrunError) -> Json:
    """`{"error": {"code", "message", "type"}}`; a prompt that is too long carries its numbers."""
    status = error.kind.status
    usual = "invalid_request_error" if status < 500 else "server_error"
    inner: Json = {"code": status, "message": str(error), "type": _TYPES.get(status, usual)}
    if numbers := context_numbers(error):
        inner = {**inner, "type": "exceed_context_size_error", **numbers}
    return {"error": inner}


def error_event(error: LlmrunError) -> bytes:
    """The same as the last event of a stream that broke."""
    return sse.event(error_body(error))
