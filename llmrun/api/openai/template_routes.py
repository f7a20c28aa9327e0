"""`/apply-template`: llama.cpp's route, which reads the body of a chat completion and gives its prompt."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter
from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from llmrun.api.answers import answers
from llmrun.api.body import read_body
from llmrun.api.delivery import whole
from llmrun.api.inflight import InFlight
from llmrun.api.oneline import Json
from llmrun.api.openai.bodies import ChatBody
from llmrun.api.openai.chat import to_request
from llmrun.api.openai.routes import named
from llmrun.api.pieces import token_pieces
from llmrun.api.ports import Service
from llmrun.api.rendered import RenderedText
from llmrun.api.schema import takes
from llmrun.types import Event, RenderRequest, Tokenized, TokenizeRequest


class TemplateBody(ChatBody):
    add_generation_prompt: Annotated[
        bool | None, Field(description="false: without the beginning of an answer")
    ] = None
    with_tokens: Annotated[
        bool | None,
        Field(description="llmrun's; `tokens` has the ids that the model is given, and their texts"),
    ] = None


def template_requests(body: TemplateBody, request_id: str) -> list[RenderRequest | TokenizeRequest]:
    """The prompt that a chat completion of the same body would be given, as text and, if wanted, tokens."""
    prompt = to_request(body, request_id)
    if body.add_generation_prompt is False:
        kwargs = {**prompt.template_kwargs, "add_generation_prompt": False}
        prompt = msgspec.structs.replace(prompt, template_kwargs=kwargs)
    render = RenderRequest(id=request_id, model=body.model, prompt=prompt)
    if not body.with_tokens:
        return [render]
    # The text alone would not do: what a message spells like a control token is none.
    tokenize = TokenizeRequest(id=f"{request_id}-tokens", model=body.model, prompt=prompt, pieces=True)
    return [render, tokenize]


class Prompt(RenderedText):
    """The reply."""

    def __init__(self) -> None:
        super().__init__("prompt")
        self._tokens: list[Json] | None = None

    def add(self, request: int, event: Event) -> None:
        super().add(request, event)
        if isinstance(event, Tokenized):
            self._tokens = token_pieces(event)

    def body(self) -> Json:
        return super().body() if self._tokens is None else {**super().body(), "tokens": self._tokens}


def template_routes(service: Service, in_flight: InFlight) -> APIRouter:
    """The route, bound to one app's parts."""
    router = APIRouter(tags=["llama.cpp"])

    @router.post("/apply-template", openapi_extra=takes(TemplateBody))
    async def apply_template(request: Request) -> Response:
        """The prompt that the model's chat template makes of a conversation; nothing is generated."""
        body = await named(service, await read_body(request, TemplateBody))
        asked = template_requests(body, request.state.request_id)
        return JSONResponse(await whole(request, in_flight, answers(service, asked), Prompt()))

    return router
