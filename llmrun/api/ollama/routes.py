"""The routes that answer: read the body, ask the daemon, send the reply."""

from __future__ import annotations

from datetime import datetime, timezone

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from llmrun.api.answers import answers
from llmrun.api.body import read_body
from llmrun.api.delivery import encoded, whole
from llmrun.api.inflight import InFlight
from llmrun.api.ollama.bodies import GenerateBody, OllamaChatBody, Sampling
from llmrun.api.ollama.lines import Json, LineStream
from llmrun.api.ollama.models import timestamp
from llmrun.api.ollama.names import by_name
from llmrun.api.ollama.replies import Head, Place, Reply, Stream, done_at_once, generated, said
from llmrun.api.ollama.requests import chat_request, generate_request, load_request
from llmrun.api.oneline import one_line
from llmrun.api.ports import Service
from llmrun.api.schema import takes
from llmrun.types import GenerateRequest


def now() -> str:
    return timestamp(datetime.now(timezone.utc))


def _json(value: Json) -> Response:
    """One object, which clients that stream read as a stream of one line."""
    return Response(one_line(value), media_type="application/json")


def ollama_routes(service: Service, in_flight: InFlight) -> APIRouter:
    """The routes, bound to one app's parts."""
    router = APIRouter(tags=["Ollama"])

    async def reply(request: Request, body: Sampling, asked: GenerateRequest, place: Place) -> Response:
        head = Head(body.model, now)
        events = answers(service, [asked])
        if body.streams:
            stream = Stream(head, place, bool(body.logprobs))
            return LineStream(in_flight, encoded(events, stream), stream.ping)
        fold = Reply(head, place, bool(body.logprobs))
        return _json(await whole(request, in_flight, events, fold))

    async def load(request: Request, body: Sampling, name: str, place: Place) -> Response:
        """The reply to a body without a prompt: the model is loaded, or with a keep-alive of 0 unloaded."""
        if body.keep_alive == 0:
            await service.let_go(name)
            return _json(done_at_once(Head(body.model, now), place, "unload"))
        asked = load_request(body, request.state.request_id, name)
        await in_flight.run(request.receive, service.load(asked))
        return _json(done_at_once(Head(body.model, now), place, "load"))

    @router.post("/api/generate", openapi_extra=takes(GenerateBody))
    async def generate(request: Request) -> Response:
        """The answer to one prompt, through the model's chat template, or with `raw` without it."""
        body = await read_body(request, GenerateBody, from_curl=True)
        model = await by_name(service.model, body.model)
        if not body.prompt:
            return await load(request, body, model.name, generated)
        asked = generate_request(body, request.state.request_id, model)
        return await reply(request, body, asked, generated)

    @router.post("/api/chat", openapi_extra=takes(OllamaChatBody))
    async def chat(request: Request) -> Response:
        """The next turn of a conversation, through the model's chat template."""
        body = await read_body(request, OllamaChatBody, from_curl=True)
        model = await by_name(service.model, body.model)
        if not body.messages:
            return await load(request, body, model.name, said)
        asked = chat_request(body, request.state.request_id, model.name)
        return await reply(request, body, asked, said)

    return router
