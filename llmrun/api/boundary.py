"""The outermost layer: names each request, lets it pass the guard, and turns every error into a reply.

A client never sees a traceback; what nobody foresaw is logged with the request's id and answered with
that id. Prompts are not logged.
"""

from __future__ import annotations

import logging
import math
import re
import secrets
from collections.abc import Mapping
from typing import Protocol

import msgspec
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from llmrun.api.asker import note_asker
from llmrun.api.guard import Guard
from llmrun.api.inflight import ClientGone
from llmrun.api.metrics import Metrics
from llmrun.api.oneline import Json
from llmrun.api.permits import note_permit
from llmrun.errors import INTERNAL, LlmrunError

log = logging.getLogger(__name__)

NOT_HONOURED = "x-llmrun-not-honoured"
"""The response header that names the fields a lenient daemon passed over."""
RETRY_AFTER = 1
"""Seconds, for errors that do not say."""


def as_known(error: Exception, request_id: str) -> LlmrunError:
    """`error` as one of ours; a stranger is logged and becomes an internal error that names the request."""
    if isinstance(error, LlmrunError):
        return error
    log.error("%s: unexpected %s", request_id, type(error).__name__, exc_info=error)
    return LlmrunError(INTERNAL, f"something unexpected went wrong with request {request_id}")


class ErrorReply(Protocol):
    """Gives an error the HTTP status and the body of the dialect that a request is in."""

    def __call__(
        self, path: str, headers: Mapping[str, str], error: LlmrunError, request_id: str, /
    ) -> tuple[int, Json]: ...


class Boundary:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, guard: Guard, metrics: Metrics, error_reply: ErrorReply) -> None:
        self._app = app
        self._guard = guard
        self._metrics = metrics
        self._error_reply = error_reply

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = f"req_{secrets.token_hex(12)}"
        scope.setdefault("state", {})["request_id"] = request_id
        headers = Headers(scope=scope)
        note_asker((scope.get("client") or ("",))[0], headers)
        # OpenAI's clients read the one name, Anthropic's the other.
        shared = {"x-request-id": request_id, "request-id": request_id, **self._cors(headers)}
        began = False

        async def send_named(message: Message) -> None:
            nonlocal began
            if message["type"] == "http.response.start":
                began = True
                MutableHeaders(scope=message).update({**shared, **_not_honoured(scope)})
                route = getattr(scope.get("route"), "path", "unknown")
                self._metrics.responded(route, message["status"])
            await send(message)

        try:
            note_permit(self._guard.check(scope["path"], headers))
            if _is_preflight(scope, headers):
                await _preflight(headers)(scope, receive, send_named)
            else:
                await self._app(scope, receive, send_named)
        except (ClientGone, ClientDisconnect):
            log.info("%s: the client hung up", request_id)
        except Exception as error:
            if began:  # the connection is cut, which is all that is left to say
                raise
            response = self._response(scope["path"], headers, as_known(error, request_id), request_id)
            await response(scope, receive, send_named)

    def _cors(self, headers: Headers) -> dict[str, str]:
        origin = headers.get("origin")
        if origin is None or not self._guard.allows_origin(origin, headers.get("host", "")):
            return {}
        return {
            "access-control-allow-origin": origin,
            "access-control-expose-headers": f"x-request-id, request-id, retry-after, {NOT_HONOURED}",
            "vary": "origin",
        }

    def _response(self, path: str, asked: Headers, error: LlmrunError, request_id: str) -> Response:
        headers = {}
        if error.kind.status in (429, 503):
            headers["retry-after"] = str(math.ceil(error.details.get("retry_after", RETRY_AFTER)))
        elif error.kind.status == 401:
            headers["www-authenticate"] = "Bearer"
        elif allow := error.details.get("allow"):
            headers["allow"] = allow
        status, body = self._error_reply(path, asked, error, request_id)
        return Response(msgspec.json.encode(body), status, headers, "application/json")


def _not_honoured(scope: Scope) -> dict[str, str]:
    """The header of the fields that were passed over, where some were; their names come from the client."""
    names = dict.fromkeys(scope["state"].get("not_honoured") or ())
    if not names:
        return {}
    listed = ", ".join(re.sub(r"[^A-Za-z0-9_.-]", "?", name[:64]) for name in list(names)[:20])
    log.warning("%s: not honoured: %s", scope["state"]["request_id"], listed)
    return {NOT_HONOURED: listed}


def _is_preflight(scope: Scope, headers: Headers) -> bool:
    return scope["method"] == "OPTIONS" and "access-control-request-method" in headers


def _preflight(headers: Headers) -> Response:
    """The answer for an origin that passed the guard. Clients send headers of their own: all are allowed."""
    allowed = {
        "access-control-allow-methods": "GET, POST, DELETE",
        "access-control-allow-headers": headers.get("access-control-request-headers", ""),
        "access-control-allow-private-network": "true",
        "access-control-max-age": "600",
    }
    return Response(status_code=204, headers=allowed)
