"""Routes for probes, and for our own command line: what runs, and end it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec
from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import Field
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from llmrun.api.body import read_body
from llmrun.api.metrics import Metrics
from llmrun.api.permits import require_admin, require_all_models
from llmrun.api.ports import Service
from llmrun.api.schema import Body, takes


class StopBody(Body):
    model: Annotated[str | None, Field(description="a loaded model; null for all of them")] = None


class ShutdownBody(Body):
    """An empty object. It is wanted so that no other site's page can send this request."""


def control_routes(service: Service, metrics: Metrics, on_shutdown: Callable[[], None]) -> APIRouter:
    """The routes, bound to one app's parts."""
    router = APIRouter(tags=["llmrun"])

    @router.get("/health")
    @router.get("/v1/health")
    async def health() -> Response:
        """That the daemon runs. It needs no model and no key."""
        return JSONResponse({"status": "ok"})

    @router.get("/metrics")
    async def read_metrics() -> Response:
        """Requests, tokens, times and loaded models, for Prometheus."""
        require_all_models()
        return Response(metrics.render(), media_type=CONTENT_TYPE_LATEST)

    @router.get("/llmrun/ps")
    async def loaded() -> Response:
        """The models in memory."""
        return Response(msgspec.json.encode(service.loaded()), media_type="application/json")

    @router.post("/llmrun/stop", openapi_extra=takes(StopBody))
    async def stop(request: Request) -> Response:
        """Unload a model, or all. The names of those unloaded."""
        body = await read_body(request, StopBody)
        return JSONResponse(list(await service.stop(body.model)))

    @router.post("/llmrun/shutdown", openapi_extra=takes(ShutdownBody))
    async def shutdown(request: Request) -> Response:
        """End the daemon. It has agreed when this returns; answers still running get a few seconds."""
        require_admin()
        await read_body(request, ShutdownBody)
        # Afterwards, so that this answer is on its way before connections close.
        return JSONResponse({"status": "shutting down"}, background=BackgroundTask(on_shutdown))

    return router
