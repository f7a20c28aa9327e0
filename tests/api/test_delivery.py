from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from typing import Any

import pytest

from llmrun.api import delivery, sse
from llmrun.api.app import create_app
from llmrun.api.inflight import InFlight
from llmrun.config import Settings
from llmrun.errors import NO_MEMORY, LlmrunError
from llmrun.types import Event, Failed, GenerateRequest, Started, Text
from tests.api.asgi import Exchange
from tests.api.scripted import MODEL, ScriptedService, answer

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 10))


def ask(stream: bool) -> dict[str, Any]:
    return {"model": MODEL, "messages": [{"role": "user", "content": "Hi"}], "stream": stream}


async def never(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
    """A request that waits in the queue for ever."""
    await asyncio.Event().wait()
    yield Started(1, 1)


async def endless(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
    """A request whose first words come, and then no more."""
    yield Started(1, 1)
    yield Text(0, "Once")
    await asyncio.Event().wait()


def app_for(service: ScriptedService, in_flight: InFlight | None = None) -> Any:
    return create_app(service, Settings(), lambda: None, in_flight)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("script", [never, endless])
def test_hang_up_closes_the_request_at_once(script: Any, stream: bool) -> None:
    async def work() -> None:
        service = ScriptedService(script)
        exchange = Exchange(app_for(service), CHAT, ask(stream))
        await service.begun.wait()
        assert not service.ended.is_set()
        exchange.hang_up()
        await service.ended.wait()
        await exchange.task

    run(work())


def test_hang_up_closes_every_prompt_of_a_completion() -> None:
    async def work() -> None:
        open_now = set()
        all_open, all_closed = asyncio.Event(), asyncio.Event()

        async def script(request: GenerateRequest) -> AsyncGenerator[Event, None]:
            open_now.add(request.id)
            if len(open_now) == 3:
                all_open.set()
            try:
                await asyncio.Event().wait()
                yield Started(1, 1)
            finally:
                open_now.discard(request.id)
                if not open_now:
                    all_closed.set()

        service = ScriptedService(script)
        exchange = Exchange(app_for(service), COMPLETIONS, {"model": MODEL, "prompt": ["a", "b", "c"]})
        await all_open.wait()
        exchange.hang_up()
        await all_closed.wait()
        await exchange.task
        assert exchange.sent.empty()

    run(work())


def test_first_failure_of_several_prompts_closes_the_others() -> None:
    async def work() -> None:
        closed = asyncio.Event()

        async def script(request: GenerateRequest) -> AsyncGenerator[Event, None]:
            if request.prompt == "bad":
                yield Failed(LlmrunError(NO_MEMORY, "no memory").info())
                return
            try:
                await asyncio.Event().wait()
            finally:
                closed.set()

        exchange = Exchange(
            app_for(ScriptedService(script)), COMPLETIONS, {"model": MODEL, "prompt": ["good", "bad"]}
        )
        assert await exchange.status() == NO_MEMORY.status
        await closed.wait()
        await exchange.task

    run(work())


def test_several_prompts_no_more_than_a_few_are_asked_at_once() -> None:
    async def work() -> None:
        most, now = 0, 0

        async def script(request: GenerateRequest) -> AsyncGenerator[Event, None]:
            nonlocal most, now
            now += 1
            most = max(most, now)
            try:
                for event in answer(str(request.prompt)):
                    await asyncio.sleep(0)
                    yield event
            finally:
                now -= 1

        service = ScriptedService(script)
        prompts = [f"{number}." for number in range(100)]
        exchange = Exchange(app_for(service), COMPLETIONS, {"model": MODEL, "prompt": prompts})
        assert await exchange.status() == 200
        assert b'"text":"99."' in await exchange.piece()
        await exchange.task
        assert most == 32
        assert len(service.asked) == 100

    run(work())


def test_stream_headers_come_with_the_first_event() -> None:
    async def work() -> None:
        exchange = Exchange(app_for(ScriptedService(endless)), CHAT, ask(stream=True))
        assert await exchange.status() == 200
        assert b'"role":"assistant"' in await exchange.piece()
        assert b"Once" in await exchange.piece()
        exchange.hang_up()
        await exchange.task

    run(work())


def test_stream_completion_headers_come_with_the_first_event_though_it_has_no_chunk() -> None:
    async def script(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        yield Started(1, 1)
        await asyncio.Event().wait()

    async def work() -> None:
        body = {"model": MODEL, "prompt": "a", "stream": True}
        exchange = Exchange(app_for(ScriptedService(script)), COMPLETIONS, body)
        assert await exchange.status() == 200
        exchange.hang_up()
        await exchange.task

    run(work())


def test_stream_without_a_first_event_sends_headers_and_heartbeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "GRACE", 0.01)
    monkeypatch.setattr(delivery, "HEARTBEAT", 0.01)

    async def work() -> None:
        exchange = Exchange(app_for(ScriptedService(never)), CHAT, ask(stream=True))
        assert await exchange.status() == 200
        assert [await exchange.piece() for _ in range(3)] == [sse.PING] * 3
        exchange.hang_up()
        await exchange.task

    run(work())


def test_stream_that_wants_no_heartbeat_sends_its_headers_and_then_what_there_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(delivery, "GRACE", 0.01)
    seen = asyncio.Event()

    async def script(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        await seen.wait()
        yield Text(0, "Once")
        await asyncio.Event().wait()

    async def work() -> None:
        exchange = Exchange(
            app_for(ScriptedService(script)), CHAT, {**ask(stream=True), "sse_ping_interval": -1}
        )
        assert await exchange.status() == 200
        seen.set()
        assert b"Once" in await exchange.piece()
        exchange.hang_up()
        await exchange.task

    run(work())


def test_stream_failure_after_the_headers_is_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "GRACE", 0.01)
    loaded = asyncio.Event()

    async def script(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        await loaded.wait()
        raise LlmrunError(NO_MEMORY, "the model does not fit")
        yield

    async def work() -> None:
        exchange = Exchange(app_for(ScriptedService(script)), CHAT, ask(stream=True))
        assert await exchange.status() == 200
        assert await exchange.piece() == sse.PING
        loaded.set()
        assert b'"code":"out_of_memory"' in await exchange.piece()
        await exchange.task
        assert exchange.sent.empty()

    run(work())


@pytest.mark.parametrize("stream", [False, True])
def test_shutdown_ends_answers_with_a_clear_error(stream: bool) -> None:
    async def work() -> None:
        in_flight = InFlight()
        service = ScriptedService(endless)
        app = app_for(service, in_flight)
        exchange = Exchange(app, CHAT, ask(stream))
        await service.begun.wait()
        if stream:
            assert await exchange.status() == 200
            assert b"role" in await exchange.piece()
            assert b"Once" in await exchange.piece()
        in_flight.refuse_more()
        late = Exchange(app, CHAT, ask(stream))
        assert await late.status() == 503
        in_flight.end_all()
        if not stream:
            assert await exchange.status() == 503
        assert b'"code":"shutting_down"' in await exchange.piece()
        await service.ended.wait()
        await exchange.task
        await late.task
        assert len(service.asked) == 1

    run(work())


def test_client_that_leaves_before_its_body_came_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        service = ScriptedService()
        exchange = Exchange(app_for(service), CHAT, {})
        exchange._incoming.get_nowait()
        exchange.hang_up()
        await exchange.task
        assert exchange.sent.empty()
        assert service.asked == []

    run(work())
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
