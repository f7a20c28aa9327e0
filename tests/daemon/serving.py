"""A service over the fake runner, and what its tests say to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psutil
import pytest

from llmrun.config import Settings
from llmrun.daemon.pool import LoadedModel
from llmrun.daemon.service import Service
from llmrun.errors import LlmrunError
from llmrun.types import Event
from tests.daemon.fakes import COMMAND, LIMITS, FakeStore, request


@asynccontextmanager
async def serving(store: FakeStore, **settings: Any) -> AsyncIterator[Service]:
    """However the test ends, closing leaves no child, and nothing waits or is leased."""
    service = Service(store, Settings(**settings), command=COMMAND, limits=LIMITS)
    try:
        yield service
    finally:
        await service.close()
    assert psutil.Process().children(recursive=True) == []
    assert service.loaded() == []
    assert service.waiting == 0


async def ask(service: Service, prompt: str, model: str = "a", id: str = "r1") -> list[Event]:
    return [event async for event in service.ask(request(prompt, model=model, id=id))]


async def refused(service: Service, prompt: str = "1", model: str = "a", id: str = "x") -> LlmrunError:
    with pytest.raises(LlmrunError) as caught:
        await ask(service, prompt, model, id)
    return caught.value


def one(service: Service, name: str = "a") -> LoadedModel:
    (model,) = [model for model in service.loaded() if model.name == name]
    return model


def in_flight(service: Service, name: str = "a") -> int:
    return sum(model.in_flight for model in service.loaded() if model.name == name)
