"""llama-server's routes that embed: read the body, ask the daemon, send the reply."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from llmrun.api.answers import answers
from llmrun.api.body import read_body
from llmrun.api.choosing import chosen
from llmrun.api.delivery import whole
from llmrun.api.inflight import InFlight
from llmrun.api.llamacpp.embedding import LlamaEmbeddingBody, reply, to_request
from llmrun.api.oneline import one_line
from llmrun.api.ports import Service
from llmrun.api.schema import takes
from llmrun.api.vectors import Vectors


def llamacpp_embedding_routes(service: Service, in_flight: InFlight) -> APIRouter:
    """The routes, bound to one app's parts."""
    router = APIRouter(tags=["llama.cpp"])

    @router.post("/embedding", openapi_extra=takes(LlamaEmbeddingBody))
    @router.post("/embeddings", openapi_extra=takes(LlamaEmbeddingBody))
    async def embed(request: Request) -> Response:
        """A vector for each input, in llama.cpp's shape."""
        body = await read_body(request, LlamaEmbeddingBody)
        model = await chosen(service, body.model, "embedding")
        asked = to_request(body, request.state.request_id, model.name)
        vectors = await whole(request, in_flight, answers(service, [asked]), Vectors())
        made = await asyncio.to_thread(lambda: one_line(reply(body, vectors)))
        return Response(made, media_type="application/json")

    return router
