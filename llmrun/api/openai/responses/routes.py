"""The routes of responses: make one, get it again, forget it."""

from __future__ import annotations

import time

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from llmrun.api.answers import answers
from llmrun.api.body import read_body
from llmrun.api.delivery import EventStream, whole
from llmrun.api.inflight import InFlight
from llmrun.api.input_tokens import InputTokens, to_count
from llmrun.api.oneline import Json
from llmrun.api.openai.responses import replies
from llmrun.api.openai.responses.bodies import InputTokensBody, ResponsesBody
from llmrun.api.openai.responses.kept import KeptResponses
from llmrun.api.openai.responses.requests import conversation, to_request
from llmrun.api.permits import asking_key
from llmrun.api.ports import Service
from llmrun.api.schema import takes
from llmrun.errors import UNSUPPORTED_FIELD, LlmrunError
from llmrun.types import Message


def responses_routes(service: Service, in_flight: InFlight) -> APIRouter:
    """The routes, bound to one app's parts; the responses that they keep end with the app."""
    router = APIRouter(tags=["OpenAI"])
    kept = KeptResponses()

    def turns_of(body: ResponsesBody) -> tuple[Message, ...]:
        earlier: tuple[Message, ...] = ()
        if body.previous_response_id is not None:
            earlier = kept.conversation(body.previous_response_id, asking_key(), time.monotonic())
        return conversation(body, earlier)

    @router.post("/v1/responses/input_tokens", openapi_extra=takes(InputTokensBody))
    @router.post("/responses/input_tokens", openapi_extra=takes(InputTokensBody), tags=["llama.cpp"])
    async def count_input_tokens(request: Request) -> Response:
        """How many tokens the prompt of such a response has; nothing is generated."""
        body = await read_body(request, InputTokensBody)
        asked = to_count(to_request(body, turns_of(body), request.state.request_id))
        count = InputTokens(object="response.input_tokens")
        return JSONResponse(await whole(request, in_flight, answers(service, [asked]), count))

    @router.post("/v1/responses", openapi_extra=takes(ResponsesBody))
    @router.post("/responses", openapi_extra=takes(ResponsesBody), tags=["llama.cpp"])
    async def create_response(request: Request) -> Response:
        """The next turn of a conversation, as items; a stored response can be gone on from."""
        body = await read_body(request, ResponsesBody)
        owner, messages = asking_key(), turns_of(body)
        request_id: str = request.state.request_id
        asked = to_request(body, messages, request_id)
        response_id = f"resp_{request_id.removeprefix('req_')}"

        def keep(response: Json, turn: Message) -> None:
            kept.keep(response_id, response, replies.joined(messages, turn), owner, time.monotonic())

        response = replies.GrowingResponse(response_id, int(time.time()), body, keep)
        events = answers(service, [asked])
        if body.stream:
            stream = replies.ResponseStream(response)
            return EventStream(in_flight, events, stream, stream.failure)
        reply = await whole(request, in_flight, events, replies.ResponseReply(response))
        return Response(msgspec.json.encode(reply), media_type="application/json")

    @router.get("/v1/responses/{response_id}")
    @router.get("/responses/{response_id}", include_in_schema=False)
    async def retrieve_response(request: Request, response_id: str) -> Response:
        """A stored response."""
        for name in request.query_params:
            raise LlmrunError(
                UNSUPPORTED_FIELD,
                f"{name[:64]} asks for another form of the response, which is not supported yet",
                hint="leave it out",
                field=name[:64],
            )
        stored = kept.response(response_id, asking_key(), time.monotonic())
        return Response(stored, media_type="application/json")

    @router.delete("/v1/responses/{response_id}")
    @router.delete("/responses/{response_id}", include_in_schema=False)
    async def delete_response(response_id: str) -> Response:
        """Forget a stored response."""
        kept.remove(response_id, asking_key(), time.monotonic())
        return JSONResponse({"id": response_id, "object": "response", "deleted": True})

    return router
