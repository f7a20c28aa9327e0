"""The routes that list, show, fetch, copy and delete models."""

from __future__ import annotations

import asyncio
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

import llmrun
from llmrun.api.body import read_body
from llmrun.api.inflight import InFlight
from llmrun.api.ollama import models, pulling
from llmrun.api.ollama.lines import LineStream
from llmrun.api.ollama.model_bodies import CopyBody, DeleteBody, PullBody, ShowBody
from llmrun.api.ollama.names import by_name
from llmrun.api.oneline import one_line
from llmrun.api.ports import Service
from llmrun.api.schema import takes
from llmrun.errors import UNKNOWN_MODEL, LlmrunError
from llmrun.store import read_header

if TYPE_CHECKING:
    from llmrun.store import StoredModel

API_LEVEL = "0.12.11"
"""The version of Ollama whose API this follows. Clients compare it with what they need."""


def ollama_model_routes(service: Service, in_flight: InFlight) -> APIRouter:
    """The routes, bound to one app's parts."""
    router = APIRouter(tags=["Ollama"])

    @router.get("/api/version")
    @router.head("/api/version", include_in_schema=False)
    async def version() -> Response:
        """The version of Ollama whose API this follows, and of llmrun."""
        return JSONResponse({"version": API_LEVEL, "llmrun": llmrun.__version__})

    @router.get("/api/tags")
    @router.head("/api/tags", include_in_schema=False)
    async def tags() -> Response:
        """The models on disk, the newest first."""
        return JSONResponse(models.tags([model for model in await service.models() if not model.missing]))

    @router.get("/api/ps")
    async def running() -> Response:
        """The models in memory, and when each will leave."""
        here = [model for model in service.loaded() if model.state != "stopping"]
        now = datetime.now(timezone.utc)
        entries = [models.running(model, await _if_stored(service, model.name), now) for model in here]
        return JSONResponse({"models": entries})

    @router.post("/api/show", openapi_extra=takes(ShowBody))
    async def show(request: Request) -> Response:
        """All that is known of one model."""
        body = await read_body(request, ShowBody, from_curl=True)
        model = await by_name(service.model, body.named)
        header = await asyncio.to_thread(read_header, model.path)
        shown = models.show(model, header, bool(body.verbose))
        return Response(one_line(shown), media_type="application/json")

    @router.post("/api/copy", openapi_extra=takes(CopyBody))
    async def copy(request: Request) -> Response:
        """A further name for a model."""
        body = await read_body(request, CopyBody, from_curl=True)
        await by_name(lambda source: service.copy(source, body.destination), body.source)
        return Response()

    @router.delete("/api/delete", openapi_extra=takes(DeleteBody))
    async def delete(request: Request) -> Response:
        """Forget a model; its file goes with its last name."""
        body = await read_body(request, DeleteBody, from_curl=True)
        await by_name(service.remove, body.named)
        return Response()

    @router.post("/api/pull", openapi_extra=takes(PullBody))
    async def pull(request: Request) -> Response:
        """Bring a model here; hanging up stops it, and the next pull goes on from there."""
        body = await read_body(request, PullBody, from_curl=True)
        progress = pulling.pulled(service, body.named)
        if body.stream is not False:
            stream = pulling.ProgressLines(progress, pulling.MANIFEST)
            return LineStream(in_flight, stream.lines(), stream.ping)
        return JSONResponse(await in_flight.run(request.receive, pulling.drained(progress)))

    return router


async def _if_stored(service: Service, name: str) -> StoredModel | None:
    try:
        return await service.model(name)
    except LlmrunError as error:
        if error.kind is not UNKNOWN_MODEL:
            raise
        return None
