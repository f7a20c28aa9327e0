"""An error in Anthropic's shape: its HTTP status, its body, and the event of a stream that broke.

https://platform.claude.com/docs/en/api/errors
"""

from __future__ import annotations

from llmrun.api import sse
from llmrun.api.oneline import Json
from llmrun.errors import OVERLOADED, LlmrunError

OVERLOADED_STATUS = 529

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
}


def _type(error: LlmrunError) -> str:
    if error.kind is OVERLOADED:
        return "overloaded_error"
    return "api_error" if error.kind.status >= 500 else _TYPES.get(error.kind.status, "invalid_request_error")


def error_body(error: LlmrunError, request_id: str) -> Json:
    """The error as Anthropic's clients read it. `details` holds our code for it, the field at fault and the
    error's numbers."""
    details = {"error_code": error.kind.code, "field": error.field, **error.details}
    inner = {"type": _type(error), "message": str(error), "details": details}
    return {"type": "error", "error": inner, "request_id": request_id}


def error_reply(error: LlmrunError, request_id: str) -> tuple[int, Json]:
    """HTTP status and body."""
    status = OVERLOADED_STATUS if error.kind is OVERLOADED else error.kind.status
    return status, error_body(error, request_id)


def error_event(error: LlmrunError, request_id: str) -> bytes:
    """The same as the last event of a stream."""
    return sse.event(error_body(error, request_id), "error")
