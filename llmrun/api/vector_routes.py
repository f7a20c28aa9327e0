"""The routes of OpenAI's embeddings and of ranking: read the body, ask the daemon, send the reply."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from llmrun.api import rerank
from llmrun.api.answers import answers
from llmrun.api.body import read_body
from llmrun.api.choosing import chosen
from llmrun.api.delivery import whole
from llmrun.api.inflight import InFlight
from llmrun.api.oneline import Json, one_line
from llmrun.api.openai import embeddings
from llmrun.api.openai.embeddings import EmbeddingsBody
from llmrun.api.ports import Service
from llmrun.api.rerank import RerankBody
from llmrun.api.schema import takes
from llmrun.api.vectors import Vectors

B = TypeVar("B", EmbeddingsBody, RerankBody)


async def named(service: Service, body: B, kind: str) -> B:
    """The body with its model's name, which llama-server's clients leave out: one of that kind is meant."""
    if body.model:
        return body
    return body.model_copy(update={"model": (await chosen(service, None, kind)).name})


def _json(value: Json) -> Response:
    return Response(one_line(value), media_type="application/json")


def vector_routes(service: Service, in_flight: InFlight) -> APIRouter:
    """The routes, bound to one app's parts."""
    router = APIRouter()

    @router.post("/v1/embeddings", openapi_extra=takes(EmbeddingsBody), tags=["OpenAI"])
    async def create_embedding(request: Request) -> Response:
        """A vector for each input, of length 1."""
        body = await named(service, await read_body(request, EmbeddingsBody), "embedding")
        asked = embeddings.to_request(body, request.state.request_id)
        vectors = await whole(request, in_flight, answers(service, [asked]), Vectors())
        return await asyncio.to_thread(lambda: _json(embeddings.reply(body, vectors)))

    async def ranked(request: Request) -> Response:
        body = await named(service, await read_body(request, RerankBody), "reranker")
        request_id = request.state.request_id
        asked = rerank.to_request(body, request_id)
        vectors = await whole(request, in_flight, answers(service, [asked]), Vectors())
        return _json(rerank.reply(body, vectors, request_id))

    @router.post("/v1/rerank", openapi_extra=takes(RerankBody), tags=["OpenAI"])
    async def rerank_documents(request: Request) -> Response:
        """Documents, sorted by how well each answers the query, by a model that ranks."""
        return await ranked(request)

    @router.post("/rerank", openapi_extra=takes(RerankBody), tags=["llama.cpp"])
    @router.post("/reranking", openapi_extra=takes(RerankBody), tags=["llama.cpp"])
    @router.post("/v1/reranking", openapi_extra=takes(RerankBody), tags=["llama.cpp"])
    async def rerank_like_llama_server(request: Request) -> Response:
        """The same as `/v1/rerank`."""
        return await ranked(request)

    return router
