"""The routes that make models: of others, of uploaded files, of Modelfiles."""

from __future__ import annotations

import asyncio
from pathlib import Path

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from llmrun.api.body import read_body
from llmrun.api.inflight import InFlight
from llmrun.api.ollama.creating import to_modelfile
from llmrun.api.ollama.lines import Json, LineStream
from llmrun.api.ollama.model_bodies import CreateBody
from llmrun.api.ollama.pulling import ProgressLines, drained
from llmrun.api.ports import Service
from llmrun.api.schema import takes
from llmrun.errors import INVALID_REQUEST, NOT_FOUND, LlmrunError

READING: Json = {"status": "reading model metadata"}


def ollama_create_routes(service: Service, in_flight: InFlight) -> APIRouter:
    """The routes, bound to one app's parts."""
    router = APIRouter(tags=["Ollama"])

    async def blobs_of(field: str, files: dict[str, str] | None) -> list[Path]:
        found = []
        for name, digest in (files or {}).items():
            if not name.lower().endswith(".gguf"):
                raise LlmrunError(
                    INVALID_REQUEST, f"{field}.{name} is no GGUF file", hint="send a GGUF", field=field
                )
            if (path := await service.blob(digest)) is None:
                raise LlmrunError(
                    INVALID_REQUEST,
                    f"there is no blob {digest}",
                    hint=f"send the file to /api/blobs/{digest} first",
                    field=f"{field}.{name}",
                )
            found.append(path)
        return found

    @router.post("/api/create", openapi_extra=takes(CreateBody))
    async def create(request: Request) -> Response:
        """Make a model of another one, of an uploaded file, or of a Modelfile."""
        body = await read_body(request, CreateBody, from_curl=True)
        weights = await blobs_of("files", body.files)
        adapters = await blobs_of("adapters", body.adapters)
        # A Modelfile of megabytes takes a while.
        modelfile = await asyncio.to_thread(to_modelfile, body, weights[0] if weights else None, adapters)
        progress = service.create(body.named, modelfile, body.quantize or None)
        if body.stream is not False:
            stream = ProgressLines(progress, READING)
            return LineStream(in_flight, stream.lines(), stream.ping)
        return JSONResponse(await in_flight.run(request.receive, drained(progress)))

    @router.head("/api/blobs/{digest}")
    async def has_blob(digest: str) -> Response:
        """Whether a file of this digest is here: 200 or 404."""
        if await service.blob(digest) is None:
            raise LlmrunError(NOT_FOUND, f"there is no blob {digest}")
        return Response()

    @router.post("/api/blobs/{digest}")
    async def receive_blob(request: Request, digest: str) -> Response:
        """A file, as it is, for a model to be made of: 201, or 200 where it is here already."""
        length = request.headers.get("content-length", "")
        size = int(length) if length.isdecimal() else None
        new = await service.receive_blob(digest, size, request.stream())
        return Response(status_code=201 if new else 200)

    return router
