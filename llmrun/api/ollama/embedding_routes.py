"""The routes that embed: read the body, ask the daemon, send the reply."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from llmrun.api.answers import answers
from llmrun.api.body import read_body
from llmrun.api.delivery import whole
from llmrun.api.inflight import InFlight
from llmrun.api.ollama.embedding import EmbedBody, OllamaEmbeddingsBody, embed_reply, embeddings_reply
from llmrun.api.ollama.names import by_name
from llmrun.api.oneline import Json, one_line
from llmrun.api.ports import Service
from llmrun.api.schema import takes
from llmrun.api.vectors import Vectors


def _json(value: Json) -> Response:
    return Response(one_line(value), media_type="application/json")


def ollama_embedding_routes(service: Service, in_flight: InFlight) -> APIRouter:
    """The routes, bound to one app's parts."""
    router = APIRouter(tags=["Ollama"])

    async def vectors_of(request: Request, body: EmbedBody | OllamaEmbeddingsBody) -> Vectors | None:
        """None where there is no input: then the model is loaded, or with a keep-alive of 0 unloaded."""
        model = await by_name(service.model, body.model)
        asked = body.request(request.state.request_id, model.name)
        if asked.inputs:
            return await whole(request, in_flight, answers(service, [asked]), Vectors())
        if body.keep_alive == 0:
            await service.let_go(model.name)
        else:
            await in_flight.run(request.receive, service.load(asked))
        return None

    @router.post("/api/embed", openapi_extra=takes(EmbedBody))
    async def embed(request: Request) -> Response:
        """A vector for each text, of length 1."""
        body = await read_body(request, EmbedBody, from_curl=True)
        vectors = await vectors_of(request, body)
        if vectors is None:
            return _json({"model": body.model, "embeddings": []})
        return await asyncio.to_thread(lambda: _json(embed_reply(body, vectors)))

    @router.post("/api/embeddings", openapi_extra=takes(OllamaEmbeddingsBody))
    async def embeddings(request: Request) -> Response:
        """The vector of one text, as the model makes it; the older form of `/api/embed`."""
        body = await read_body(request, OllamaEmbeddingsBody, from_curl=True)
        vectors = await vectors_of(request, body)
        return _json({"embedding": []} if vectors is None else embeddings_reply(vectors))

    return router
