"""The outermost layer: names each request, lets it pass the guard, and turns every error into a reply.

A client never sees a traceback; what nobody foresaw is logged with the request's id and answered with
that id. Prompts are not logged.
"""

from __future__ import annotations

import logging
import math
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import msgspec
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from llmrun.api.asker import note_asker
from llmrun.api.guard import Guard
from llmrun.api.holding import Holding
from llmrun.api.inflight import ClientGone
from llmrun.api.metrics import Metrics
from llmrun.api.oneline import Json
from llmrun.api.permits import note_permit
from llmrun.errors import CANCELLED, INTERNAL, LlmrunError, short_of_memory
from llmrun.log import fields, note_request

log = logging.getLogger(__name__)

NOT_HONOURED = "x-llmrun-not-honoured"
"""The response header that names the fields a lenient daemon passed over."""
MAX_PATH = 200
"""Characters of a path in the log."""
RETRY_AFTER = 1
"""Seconds, for errors that do not say."""


@dataclass
class _Ending:
    """What is logged of a request when it is over. No status: nobody was there to be answered."""

    asked: str
    client: str
    began: float = field(default_factory=time.monotonic)
    status: int = 0
    error: str = ""
    key: str = ""

    def tell(self) -> None:
        """Refusals and failures always; what went well only where details are wanted."""
        seconds = time.monotonic() - self.began
        told = {name: value for name, value in vars(self).items() if value and name != "began"}
        outcome = " ".join(
            filter(None, (str(self.status or "hung up"), self.error, self.key and f"by {self.key}"))
        )
        log.log(
            logging.INFO if self.error else logging.DEBUG,
            "%s: %s after %.2f s",
            self.asked,
            outcome,
            seconds,
            extra=fields(**told, seconds=round(seconds, 3)),
        )


def as_known(error: Exception, request_id: str) -> LlmrunError:
    """`error` as one of ours; a stranger is logged and becomes an internal error that names the request. Want
    of memory is no stranger."""
    if isinstance(error, LlmrunError):
        return error
    if short := short_of_memory(error):
        log.warning("memory ran out", extra={"request": request_id})
        return short
    log.error("unexpected %s", type(error).__name__, exc_info=error, extra={"request": request_id})
    return LlmrunError(INTERNAL, f"something unexpected went wrong with request {request_id}")


class ErrorReply(Protocol):
    """Gives an error the HTTP status and the body of the dialect that a request is in."""

    def __call__(
        self, path: str, headers: Mapping[str, str], error: LlmrunError, request_id: str, /
    ) -> tuple[int, Json]: ...


class Boundary:
    """ASGI middleware."""

    def __init__(
        self, app: ASGIApp, guard: Guard, metrics: Metrics, holding: Holding, error_reply: ErrorReply
    ) -> None:
        self._app = app
        self._guard = guard
        self._metrics = metrics
        self._holding = holding
        self._error_reply = error_reply

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = f"req_{secrets.token_hex(12)}"
        scope.setdefault("state", {})["request_id"] = request_id
        note_request(request_id)
        headers = Headers(scope=scope)
        client = (scope.get("client") or ("",))[0]
        note_asker(client, headers)
        ending = _Ending(f"{scope['method']} {scope['path'][:MAX_PATH]}", client)
        # OpenAI's clients read the one name, Anthropic's the other.
        shared = {"x-request-id": request_id, "request-id": request_id, **self._cors(headers)}

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                ending.status = message["status"]
                MutableHeaders(scope=message).update({**shared, **_not_honoured(scope)})
                route = getattr(scope.get("route"), "path", "unknown")
                self._metrics.responded(route, message["status"])
            await send(message)

        try:
            self._guard.check_source(headers)
            if _is_preflight(scope, headers):  # browsers send it without the key
                await _preflight(headers)(scope, receive, send_named)
                return
            key = self._guard.admit(scope["path"], headers)
            ending.key = key.name if key else ""
            note_permit(key)
            await self._app(scope, receive, send_named)
        except (ClientGone, ClientDisconnect):
            ending.error = CANCELLED.code
        except Exception as error:
            if ending.status:  # the connection is cut, which is all that is left to say
                ending.error = (error.kind if isinstance(error, LlmrunError) else INTERNAL).code
                raise
            known = as_known(error, request_id)
            ending.error = known.kind.code
            response = self._response(scope["path"], headers, known, request_id)
            await response(scope, receive, send_named)
        finally:
            self._holding.give_back(scope)
            ending.tell()

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
        if error.kind.status in (429, 503) or "retry_after" in error.details:
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
    log.warning("not honoured: %s", listed)
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
