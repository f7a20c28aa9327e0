"""Every route that generates, in every dialect: alive while a prompt is long, and over when its client is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from llmrun.api import delivery
from llmrun.api.app import create_app
from llmrun.config import Settings
from llmrun.types import Event, GenerateRequest, Started, Text
from tests.api.asgi import Exchange
from tests.api.openai.test_models import stored
from tests.api.scripted import MODEL, ScriptedService

HI = [{"role": "user", "content": "Hi"}]
ROUTES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": HI},
    "/v1/completions": {"prompt": "Hi"},
    "/v1/responses": {"input": "Hi"},
    "/v1/messages": {"messages": HI, "max_tokens": 9},
    "/api/generate": {"prompt": "Hi"},
    "/api/chat": {"messages": HI},
    "/completion": {"prompt": "Hi"},
    "/infill": {"input_prefix": "a", "input_suffix": "b"},
}
Script = Callable[[GenerateRequest], AsyncGenerator[Event, None]]


async def waits(_: GenerateRequest) -> AsyncGenerator[Event, None]:
    """In the queue, or while its model loads: nothing was said yet."""
    await asyncio.sleep(60)
    yield Started(5, 1)


async def prefills(_: GenerateRequest) -> AsyncGenerator[Event, None]:
    yield Started(5, 1)
    await asyncio.sleep(60)


async def decodes(_: GenerateRequest) -> AsyncGenerator[Event, None]:
    yield Started(5, 1)
    while True:
        yield Text(0, "more ", tokens=(7,))
        await asyncio.sleep(0.005)


def exchange(service: ScriptedService, path: str, stream: bool) -> Exchange:
    body = {"model": MODEL, **ROUTES[path], "stream": stream}
    return Exchange(create_app(service, Settings(), lambda: None), path, body)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("phase", [waits, prefills, decodes])
@pytest.mark.parametrize("path", ROUTES)
def test_hang_up_ends_the_request_in_every_phase(path: str, phase: Script, stream: bool) -> None:  # B13
    async def story() -> None:
        service = ScriptedService(script=phase, stored=[stored(MODEL)])
        asked = exchange(service, path, stream)
        await asyncio.wait_for(service.begun.wait(), 5)
        await asyncio.sleep(0.02)
        assert not service.ended.is_set()
        asked.hang_up()
        await asyncio.wait_for(service.ended.wait(), 5)
        await asyncio.wait_for(asked.task, 5)

    asyncio.run(story())


@pytest.mark.parametrize("phase", [waits, prefills])
@pytest.mark.parametrize("path", ROUTES)
def test_stream_of_a_long_prompt_begins_and_is_kept_alive(  # B08
    path: str, phase: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "GRACE", 0.01)
    monkeypatch.setattr(delivery, "HEARTBEAT", 0.01)

    async def story() -> None:
        service = ScriptedService(script=phase, stored=[stored(MODEL)])
        asked = exchange(service, path, stream=True)
        assert await asked.status() == 200
        assert all([await asked.piece() for _ in range(5)])  # at most three of them are the answer's
        asked.hang_up()
        await asked.task

    asyncio.run(story())


@pytest.mark.parametrize("path", ROUTES)
def test_two_streams_at_once_are_both_whole(path: str) -> None:  # B16
    async def story() -> None:
        service = ScriptedService(stored=[stored(MODEL)])
        app = create_app(service, Settings(), lambda: None)
        body = {"model": MODEL, **ROUTES[path], "stream": True}
        both = [Exchange(app, path, body) for _ in range(2)]
        for asked in both:
            await asyncio.wait_for(asked.task, 5)
            assert await asked.status() == 200
            sent = b""
            while piece := await asked.piece():
                sent += piece
            assert "wörld".encode() in sent

    asyncio.run(story())
