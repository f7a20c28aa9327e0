"""The routes that tell of models and places without asking a model."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from llmrun.api.choosing import chosen
from llmrun.api.llamacpp.state import lora_adapters, props, slots
from llmrun.api.ports import Service
from llmrun.config import Settings
from llmrun.errors import METHOD_NOT_ALLOWED, OVERLOADED, LlmrunError
from llmrun.store import read_header

if TYPE_CHECKING:
    from llmrun.daemon.pool import LoadedModel


def llamacpp_state_routes(service: Service, settings: Settings) -> APIRouter:
    """The routes, bound to one app's parts."""
    router = APIRouter(tags=["llama.cpp"])

    @router.get("/props")
    async def read_props(model: str | None = None) -> Response:
        """What a model is and how it samples; `?model=NAME` where more than one could be meant."""
        stored = await chosen(service, model)
        header = await asyncio.to_thread(read_header, stored.path)
        return JSONResponse(props(stored, header, loaded(stored.name), settings))

    @router.get("/slots")
    async def read_slots(model: str | None = None, fail_on_no_slot: str = "") -> Response:
        """The places for answers of a loaded model, and which are in use; 503 with `?fail_on_no_slot=1`
        where all are."""
        found = slots(loaded((await chosen(service, model)).name))
        if fail_on_no_slot and found and all(slot["is_processing"] for slot in found):
            raise LlmrunError(OVERLOADED, "no slot is free")
        return JSONResponse(found)

    @router.get("/lora-adapters")
    async def read_adapters(model: str | None = None) -> Response:
        """The LoRA adapters of a model, as a request's `lora` numbers them."""
        return JSONResponse(lora_adapters(await chosen(service, model)))

    @router.post("/lora-adapters", include_in_schema=False)
    async def set_adapters() -> Response:
        raise LlmrunError(
            METHOD_NOT_ALLOWED,
            "adapters are not set for everybody's requests at once",
            hint='send lora with each request: [{"id": 0, "scale": 0.5}]',
            allow="GET",
        )

    def loaded(name: str) -> LoadedModel | None:
        return next((model for model in service.loaded() if model.name == name), None)

    return router
