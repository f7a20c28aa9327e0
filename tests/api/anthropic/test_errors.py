from __future__ import annotations

import pytest

from llmrun.api.anthropic.errors import error_event, error_reply
from llmrun.errors import (
    CONFLICT,
    CONTEXT_LENGTH,
    FORBIDDEN,
    INTERNAL,
    INVALID_REQUEST,
    KINDS,
    OVERLOADED,
    SHUTTING_DOWN,
    TOO_LARGE,
    UNAUTHORIZED,
    UNKNOWN_MODEL,
    Kind,
    LlmrunError,
)


@pytest.mark.parametrize(
    ("kind", "status", "type_"),
    [
        (INVALID_REQUEST, 400, "invalid_request_error"),
        (CONTEXT_LENGTH, 400, "invalid_request_error"),
        (UNAUTHORIZED, 401, "authentication_error"),
        (FORBIDDEN, 403, "permission_error"),
        (UNKNOWN_MODEL, 404, "not_found_error"),
        (CONFLICT, 409, "conflict_error"),
        (TOO_LARGE, 413, "request_too_large"),
        (INTERNAL, 500, "api_error"),
        (SHUTTING_DOWN, 503, "api_error"),
        (OVERLOADED, 529, "overloaded_error"),
    ],
)
def test_error_reply_has_anthropics_status_and_type(kind: Kind, status: int, type_: str) -> None:
    got, body = error_reply(LlmrunError(kind, "it failed", hint="mend it", field="a.0", context=5), "req_1")
    assert got == status
    assert body == {
        "type": "error",
        "error": {
            "type": type_,
            "message": "it failed. mend it",
            "details": {"error_code": kind.code, "field": "a.0", "context": 5},
        },
        "request_id": "req_1",
    }


def test_error_reply_every_kind_keeps_its_class_of_status() -> None:
    for kind in KINDS.values():
        status, _ = error_reply(LlmrunError(kind, "x"), "req_1")
        assert status // 100 == kind.status // 100


def test_error_event_is_named() -> None:
    sent = error_event(LlmrunError(INTERNAL, "x"), "req_1")
    assert sent.startswith(b'event: error\ndata: {"type":"error","error":{"type":"api_error"')
