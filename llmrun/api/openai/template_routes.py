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
from llmrun.api.openai.bodies import ChatBody
from llmrun.api.openai.chat import to_request
from llmrun.api.openai.routes import named
from llmrun.api.ports import Service
from llmrun.api.rendered import RenderedText
from llmrun.api.schema import takes
from llmrun.types import RenderRequest


class TemplateBody(ChatBody):
    add_generation_prompt: Annotated[
        bool | None, Field(description="false: without the beginning of an answer")
    ] = None


def template_request(body: TemplateBody, request_id: str) -> RenderRequest:
    """The prompt that a chat completion of the same body would be given, as text."""
    prompt = to_request(body, request_id)
    if body.add_generation_prompt is False:
        kwargs = {**prompt.template_kwargs, "add_generation_prompt": False}
        prompt = msgspec.structs.replace(prompt, template_kwargs=kwargs)
    return RenderRequest(id=request_id, model=body.model, prompt=prompt)


def template_routes(service: Service, in_flight: InFlight) -> APIRouter:
    """The route, bound to one app's parts."""
    router = APIRouter(tags=["llama.cpp"])

    @router.post("/apply-template", openapi_extra=takes(TemplateBody))
    async def apply_template(request: Request) -> Response:
        """The prompt that the model's chat template makes of a conversation; nothing is generated."""
        body = await named(service, await read_body(request, TemplateBody))
        asked = template_request(body, request.state.request_id)
        return JSONResponse(
            await whole(request, in_flight, answers(service, [asked]), RenderedText("prompt"))
        )

    return router
