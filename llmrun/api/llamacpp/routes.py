"""llama-server's own routes: read the body, ask the daemon, send the reply."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from llmrun.api.answers import Numbered, answers
from llmrun.api.body import read_body
from llmrun.api.choosing import chosen, window
from llmrun.api.delivery import EventStream, whole
from llmrun.api.inflight import InFlight
from llmrun.api.llamacpp.bodies import (
    Completing,
    DetokenizeBody,
    InfillBody,
    LlamaCompletionBody,
    TokenizeBody,
)
from llmrun.api.llamacpp.errors import error_event
from llmrun.api.llamacpp.replies import Asked, CompletionReply, CompletionStream
from llmrun.api.llamacpp.requests import completion_requests, infill_request
from llmrun.api.llamacpp.settings import generation_settings
from llmrun.api.llamacpp.texts import (
    BiasOfTokens,
    TokenList,
    detokenize_request,
    tokenize_request,
)
from llmrun.api.oneline import one_line
from llmrun.api.ports import Service
from llmrun.api.rendered import RenderedText
from llmrun.api.schema import takes
from llmrun.types import DetokenizeRequest, GenerateRequest, Options, Rendered, Started, Stopped


def llamacpp_routes(service: Service, in_flight: InFlight) -> APIRouter:
    """The routes that ask a model, bound to one app's parts."""
    router = APIRouter(tags=["llama.cpp"])

    @router.post("/completion", openapi_extra=takes(LlamaCompletionBody))
    @router.post("/completions", openapi_extra=takes(LlamaCompletionBody))
    async def complete(request: Request) -> Response:
        """The continuation of one or more raw prompts, in llama.cpp's shape."""
        body = await read_body(request, LlamaCompletionBody)
        model = await chosen(service, body.model)
        bias = await biases(request, body, model.name)
        asked = completion_requests(body, request.state.request_id, model.name, bias)
        return await reply(request, body, asked, model.options)

    @router.post("/infill", openapi_extra=takes(InfillBody))
    async def infill(request: Request) -> Response:
        """What belongs between two pieces of code, from a model made for that."""
        body = await read_body(request, InfillBody)
        model = await chosen(service, body.model)
        bias = await biases(request, body, model.name)
        asked = infill_request(body, request.state.request_id, model.name, bias)
        return await reply(request, body, [asked], model.options)

    @router.post("/tokenize", openapi_extra=takes(TokenizeBody))
    async def tokenize(request: Request) -> Response:
        """The token ids of a text."""
        body = await read_body(request, TokenizeBody)
        model = await chosen(service, body.model)
        asked = tokenize_request(body, request.state.request_id, model.name)
        return _json(await whole(request, in_flight, answers(service, [asked]), TokenList(body)))

    @router.post("/detokenize", openapi_extra=takes(DetokenizeBody))
    async def detokenize(request: Request) -> Response:
        """The text of token ids."""
        body = await read_body(request, DetokenizeBody)
        model = await chosen(service, body.model)
        asked = detokenize_request(body, request.state.request_id, model.name)
        return _json(await whole(request, in_flight, answers(service, [asked]), RenderedText("content")))

    async def biases(request: Request, body: Completing, model: str) -> dict[int, float]:
        bias = BiasOfTokens(body.logit_bias or ())
        wanted = bias.requests(request.state.request_id, model)
        return await whole(request, in_flight, answers(service, wanted), bias) if wanted else bias.body()

    async def reply(
        request: Request, body: Completing, requests: Sequence[GenerateRequest], lower: Options
    ) -> Response:
        model = requests[0].model
        settings = [generation_settings(body, each, lower) for each in requests]
        asked = Asked(body, model, settings, lambda: window(service, model))
        events = answers(service, requests)
        if not body.response_fields or "prompt" in body.response_fields:
            events = _with_prompts(service, requests, events)
        if body.stream:
            stream = CompletionStream(asked)
            return EventStream(in_flight, events, stream, error_event, heartbeat=body.heartbeat)
        return _json(await whole(request, in_flight, events, CompletionReply(asked)))

    return router


async def _with_prompts(
    service: Service, requests: Sequence[GenerateRequest], events: AsyncGenerator[Numbered, None]
) -> AsyncGenerator[Numbered, None]:
    """The events, and the text of each request's prompt in front of its end, as its tokens spell it."""
    lengths: dict[int, int] = {}
    async with aclosing(events):
        async for number, event in events:
            if isinstance(event, Started):
                lengths[number] = event.prompt_tokens
            elif isinstance(event, Stopped) and event.index == 0:
                asked = requests[number]
                tokens = event.tokens[: lengths[number]]
                reading = DetokenizeRequest(id=f"{asked.id}-prompt", model=asked.model, tokens=tokens)
                async with aclosing(answers(service, [reading])) as read:
                    async for _, text in read:
                        if isinstance(text, Rendered):
                            yield number, text
            yield number, event


def _json(value: object) -> Response:
    return Response(one_line(value), media_type="application/json")
