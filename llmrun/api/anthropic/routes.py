"""The Anthropic routes: read the body, ask the daemon, send the reply."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Match
from starlette.types import Scope

from llmrun.api.answers import answers
from llmrun.api.anthropic.bodies import CountBody, MessagesBody
from llmrun.api.anthropic.errors import error_event
from llmrun.api.anthropic.models import model_info, model_page
from llmrun.api.anthropic.replies import Head, MessageReply, MessageStream
from llmrun.api.anthropic.requests import to_request
from llmrun.api.body import read_body
from llmrun.api.delivery import EventStream, whole
from llmrun.api.inflight import InFlight
from llmrun.api.input_tokens import InputTokens, to_count
from llmrun.api.oneline import one_line
from llmrun.api.ports import Service
from llmrun.api.schema import takes

if TYPE_CHECKING:
    from llmrun.store import StoredModel

VERSION_HEADER = "anthropic-version"
"""Sent with every request by Anthropic's clients. Which version it names makes no difference."""


def is_anthropic(path: str, headers: Mapping[str, str]) -> bool:
    """Whether a request is in this dialect. `/v1/models` is OpenAI's too: there the header tells."""
    if path == "/v1/messages" or path.startswith("/v1/messages/"):
        return True
    return VERSION_HEADER in headers and (path == "/v1/models" or path.startswith("/v1/models/"))


class _OurClients(APIRoute):
    """A route that is not there for the clients of other dialects."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if not is_anthropic(scope["path"], Headers(scope=scope)):
            return Match.NONE, {}
        return super().matches(scope)


def anthropic_routes(service: Service, in_flight: InFlight) -> APIRouter:
    """The routes, bound to one app's parts. They go in front of OpenAI's."""
    router = APIRouter(tags=["Anthropic"])

    @router.post("/v1/messages", openapi_extra=takes(MessagesBody))
    async def create_message(request: Request) -> Response:
        """The next turn of a conversation, through the model's chat template."""
        body = await read_body(request, MessagesBody)
        request_id: str = request.state.request_id
        head = Head(f"msg_{request_id.removeprefix('req_')}", body.model)
        events = answers(service, [to_request(body, request_id)])
        if body.stream:
            stream = MessageStream(head, body)
            broken = partial(error_event, request_id=request_id)
            return EventStream(in_flight, events, stream, broken, stream.ping)
        return _json(await whole(request, in_flight, events, MessageReply(head, body)))

    @router.post("/v1/messages/count_tokens", openapi_extra=takes(CountBody))
    async def count_tokens(request: Request) -> Response:
        """How many tokens the prompt of such a conversation has; nothing is generated."""
        body = await read_body(request, CountBody)
        events = answers(service, [to_count(to_request(body, request.state.request_id))])
        return _json(await whole(request, in_flight, events, InputTokens()))

    return router


def anthropic_model_routes(service: Service) -> APIRouter:
    """`/v1/models` for Anthropic's clients; in front of OpenAI's, which takes all others."""
    router = APIRouter(route_class=_OurClients, include_in_schema=False)

    async def usable() -> list[StoredModel]:
        return [model for model in await service.models() if not model.missing]

    @router.get("/v1/models")
    async def list_models() -> Response:
        return JSONResponse(model_page(await usable()))

    @router.get("/v1/models/{name:path}")
    async def retrieve_model(name: str) -> Response:
        return JSONResponse(model_info(await service.model(name)))

    return router


def _json(value: dict[str, object]) -> Response:
    return Response(one_line(value), media_type="application/json")
