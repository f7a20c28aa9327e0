"""The app: every part made once and put together. Knows no sockets and no processes."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Mapping

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

import llmrun
from llmrun.access.gate import Gate
from llmrun.api.anthropic import errors as anthropic
from llmrun.api.anthropic.routes import anthropic_model_routes, anthropic_routes, is_anthropic
from llmrun.api.boundary import Boundary
from llmrun.api.control import control_routes
from llmrun.api.guard import Guard
from llmrun.api.holding import Holding
from llmrun.api.inflight import InFlight
from llmrun.api.llamacpp import errors as llamacpp
from llmrun.api.llamacpp.embedding_routes import llamacpp_embedding_routes
from llmrun.api.llamacpp.routes import llamacpp_routes
from llmrun.api.llamacpp.state_routes import llamacpp_state_routes
from llmrun.api.metrics import Metrics
from llmrun.api.not_built import asks_for
from llmrun.api.ollama import lines as ollama
from llmrun.api.ollama.create_routes import ollama_create_routes
from llmrun.api.ollama.embedding_routes import ollama_embedding_routes
from llmrun.api.ollama.model_routes import ollama_model_routes
from llmrun.api.ollama.routes import ollama_routes
from llmrun.api.oneline import Json
from llmrun.api.openai import errors as openai
from llmrun.api.openai.responses.routes import responses_routes
from llmrun.api.openai.routes import openai_routes
from llmrun.api.openai.template_routes import template_routes
from llmrun.api.pages import describe, page_routes
from llmrun.api.permits import PermittedService
from llmrun.api.ports import Service
from llmrun.api.vector_routes import vector_routes
from llmrun.api.web import web_routes
from llmrun.config import Settings
from llmrun.errors import METHOD_NOT_ALLOWED, NOT_FOUND, LlmrunError


def create_app(
    daemon: Service,
    settings: Settings,
    on_shutdown: Callable[[], None],
    in_flight: InFlight | None = None,
    gate: Gate | None = None,
) -> FastAPI:
    """The app over a running daemon's service, which stays the caller's to start and close.

    on_shutdown  called when a client asks the daemon to end
    in_flight    the answers being made, for a caller that wants to end them at shutdown
    gate         who may come in; without one, whoever has the settings' key, if they have one
    """
    in_flight = in_flight or InFlight()
    gate = gate or Gate(settings.api_key)
    metrics = Metrics(daemon, gate)
    service = PermittedService(daemon, gate)
    app = FastAPI(
        title="llmrun",
        version=llmrun.__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    app.state.lenient = settings.lenient
    app.state.holding = holding = Holding()
    app.include_router(anthropic_model_routes(service))
    app.include_router(openai_routes(service, in_flight))
    app.include_router(responses_routes(service, in_flight))
    app.include_router(vector_routes(service, in_flight))
    app.include_router(anthropic_routes(service, in_flight))
    app.include_router(ollama_routes(service, in_flight))
    app.include_router(ollama_embedding_routes(service, in_flight))
    app.include_router(ollama_model_routes(service, in_flight))
    app.include_router(ollama_create_routes(service, in_flight))
    app.include_router(llamacpp_routes(service, in_flight))
    app.include_router(llamacpp_embedding_routes(service, in_flight))
    app.include_router(template_routes(service, in_flight))
    app.include_router(llamacpp_state_routes(service, settings))
    app.include_router(control_routes(service, metrics, on_shutdown))
    app.include_router(page_routes(app))
    app.include_router(web_routes())
    app.add_exception_handler(HTTPException, _no_route)
    guard = Guard(settings, gate)
    app.add_middleware(Boundary, guard=guard, metrics=metrics, holding=holding, error_reply=_error_reply)
    # FastAPI's own way to extend it; made when it is first asked for, as it takes longer than all else here.
    app.openapi = functools.cache(functools.partial(describe, app))  # type: ignore[method-assign]  # documented
    return app


_LLAMACPP = frozenset(
    {
        *("/completion", "/completions", "/infill", "/tokenize", "/detokenize", "/apply-template"),
        *("/embedding", "/embeddings", "/lora-adapters"),
        *("/props", "/slots", "/rerank", "/reranking", "/v1/reranking", "/metrics", "/health", "/v1/health"),
    }
)


def _error_reply(
    path: str, headers: Mapping[str, str], error: LlmrunError, request_id: str
) -> tuple[int, Json]:
    """The error in the dialect of the request; OpenAI's where the path is no dialect's."""
    if is_anthropic(path, headers):
        return anthropic.error_reply(error, request_id)
    error_body = openai.error_body
    if path.startswith("/api/"):
        error_body = ollama.error_body
    elif path in _LLAMACPP:
        error_body = llamacpp.error_body
    return error.kind.status, error_body(error)


async def _no_route(request: Request, error: Exception) -> Response:
    """What the router says where no route fits, as an error of ours."""
    assert isinstance(error, HTTPException)
    path, method = request.url.path[:200], request.method
    if error.status_code == 405:
        allow = (error.headers or {}).get("Allow", "")
        raise LlmrunError(
            METHOD_NOT_ALLOWED, f"{path} does not take {method}", hint=f"use {allow}", allow=allow
        )
    if what := asks_for(path):
        raise LlmrunError(
            NOT_FOUND,
            f"{path} asks for {what}, which is not supported",
            hint="the routes are listed at /docs",
        )
    near = difflib.get_close_matches(path, request.app.openapi()["paths"], n=2)
    hint = f"did you mean {' or '.join(near)}?" if near else "the routes are listed at /docs"
    raise LlmrunError(NOT_FOUND, f"there is no route {path}", hint=hint)
