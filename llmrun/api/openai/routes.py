"""The OpenAI routes: read the body, ask the daemon, send the reply."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from llmrun.api.answers import answers
from llmrun.api.body import read_body
from llmrun.api.choosing import chosen
from llmrun.api.delivery import Encoder, EventStream, Fold, whole
from llmrun.api.inflight import InFlight
from llmrun.api.input_tokens import InputTokens, to_count
from llmrun.api.oneline import Json
from llmrun.api.openai.bodies import ChatBody, CompletionBody
from llmrun.api.openai.chat import ChatReply, ChatStream, to_request
from llmrun.api.openai.completions import CompletionReply, CompletionStream, to_requests
from llmrun.api.openai.errors import error_event
from llmrun.api.openai.models import model_card, model_list
from llmrun.api.openai.reply import Head, encode
from llmrun.api.openai.sampling import Sampling
from llmrun.api.ports import Service
from llmrun.api.schema import takes
from llmrun.types import GenerateRequest

if TYPE_CHECKING:
    from llmrun.store import StoredModel


def openai_routes(service: Service, in_flight: InFlight) -> APIRouter:
    """The routes, bound to one app's parts."""
    router = APIRouter(tags=["OpenAI"])

    async def reply(
        request: Request,
        body: Sampling,
        requests: Sequence[GenerateRequest],
        fold: Fold[Json],
        encoder: Encoder,
    ) -> Response:
        events = answers(service, requests)
        if body.stream:
            return EventStream(in_flight, events, encoder, error_event, heartbeat=body.heartbeat)
        whole_reply = await whole(request, in_flight, events, fold)
        return Response(encode(whole_reply), media_type="application/json")

    @router.post("/v1/chat/completions", openapi_extra=takes(ChatBody))
    @router.post("/chat/completions", openapi_extra=takes(ChatBody), tags=["llama.cpp"])
    async def create_chat_completion(request: Request) -> Response:
        """The next turn of a conversation, through the model's chat template."""
        body = await named(service, await read_body(request, ChatBody))
        request_id, head = _name(request, "chatcmpl", body)
        asked = [to_request(body, request_id)]
        return await reply(request, body, asked, ChatReply(head, body), ChatStream(head, body))

    @router.post("/v1/chat/completions/input_tokens", openapi_extra=takes(ChatBody), tags=["llama.cpp"])
    @router.post("/chat/completions/input_tokens", openapi_extra=takes(ChatBody), tags=["llama.cpp"])
    async def count_input_tokens(request: Request) -> Response:
        """How many tokens the prompt of such a chat completion has; nothing is generated."""
        body = await named(service, await read_body(request, ChatBody))
        asked = to_count(to_request(body, request.state.request_id))
        count = InputTokens(object="response.input_tokens")
        return JSONResponse(await whole(request, in_flight, answers(service, [asked]), count))

    @router.post("/v1/completions", openapi_extra=takes(CompletionBody))
    async def create_completion(request: Request) -> Response:
        """The continuation of one or more raw prompts, with no template around them."""
        body = await named(service, await read_body(request, CompletionBody))
        request_id, head = _name(request, "cmpl", body)
        asked = to_requests(body, request_id)
        return await reply(request, body, asked, CompletionReply(head, body), CompletionStream(head, body))

    async def usable() -> list[StoredModel]:
        return [model for model in await service.models() if not model.missing]

    @router.get("/v1/models")
    @router.get("/models", tags=["llama.cpp"])
    async def list_models() -> Response:
        """The models on disk; `meta` says how one is loaded."""
        return JSONResponse(model_list(await usable(), service.loaded()))

    @router.get("/v1/models/{name:path}")
    async def retrieve_model(name: str) -> Response:
        """The model that a name means, as the other routes take it."""
        return JSONResponse(model_card(await service.model(name), service.loaded()))

    return router


B = TypeVar("B", bound=Sampling)


async def named(service: Service, body: B) -> B:
    """The body with its model's name, which llama-server's clients leave out."""
    if body.model:
        return body
    return body.model_copy(update={"model": (await chosen(service, None)).name})


def _name(request: Request, prefix: str, body: Sampling) -> tuple[str, Head]:
    """The request's id, which goes down and into the log, and the reply's head, which shows it."""
    request_id: str = request.state.request_id
    reply_id = f"{prefix}-{request_id.removeprefix('req_')}"
    return request_id, Head(reply_id, int(time.time()), body.model)
