"""Clients that leave and runners that die, in every phase, with real child processes."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from llmrun.daemon.service import Service
from llmrun.errors import CANCELLED, OVERLOADED, RUNNER_DIED
from llmrun.store import StoredModel
from llmrun.types import Failed, Finished, Text
from tests.daemon.fakes import FakeStore, kinds, request, run, until
from tests.daemon.serving import ask, in_flight, one, refused, serving
from tests.support.events import joined_text

# cancelling, phase by phase


def test_cancel_while_loading_leaves_the_queue(tmp_path: Path) -> None:
    async def story() -> None:
        store = FakeStore(tmp_path, a="gate")
        async with serving(store) as service:
            asking = asyncio.create_task(ask(service, "1"))
            await until(lambda: service.waiting == 1)
            await cancel(asking)
            assert service.waiting == 0
            assert service.counters.requests == {("a", CANCELLED.code): 1}
            (tmp_path / "open").touch()
            assert joined_text(await ask(service, "1", id="next")) == "0 "
            assert store.loads() == ["a"]

    run(story())


def test_request_without_memory_for_it_is_overloaded_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        store = FakeStore(tmp_path, a="good")
        async with serving(store) as service:
            with monkeypatch.context() as short:
                short.setattr(store, "resolve", _no_memory)
                (failed,) = await ask(service, "1")
            assert isinstance(failed, Failed)
            assert (failed.error.code, failed.error.details) == (OVERLOADED.code, {"retry_after": 5})
            assert service.counters.requests == {("", OVERLOADED.code): 1}
            assert joined_text(await ask(service, "1")) == "0 "

    run(story())


def _no_memory(_name: str) -> StoredModel:
    raise MemoryError


def test_cancel_while_waiting_for_room_leaves_the_other_loaded(tmp_path: Path) -> None:
    async def story() -> None:
        store = FakeStore(tmp_path, a="good", b="good")
        async with serving(store, max_loaded=1) as service:
            stream = service.ask(request("stall"))
            await anext(stream)
            asking = asyncio.create_task(ask(service, "1", "b"))
            await until(lambda: service.waiting == 1)
            await cancel(asking)
            await stream.aclose()
            assert store.loads() == ["a"]
            assert one(service).in_flight == 0

    run(story())


def test_cancel_in_prefill_reaches_the_runner(tmp_path: Path) -> None:
    async def story() -> None:
        store = FakeStore(tmp_path, a="good")
        async with serving(store) as service:
            await ask(service, "1", id="warm")
            asking = asyncio.create_task(ask(service, "silent", id="long"))
            await until(lambda: one(service).in_flight == 1)
            await cancel(asking)
            assert one(service).in_flight == 0
            await until(lambda: store.cancels() == ["long"])

    run(story())


@pytest.mark.parametrize("script", ["good", "mute"])
def test_close_in_decode_reaches_the_runner(tmp_path: Path, script: str) -> None:
    async def story() -> None:
        store = FakeStore(tmp_path, a=script)
        async with serving(store) as service:
            stream = service.ask(request("stall", id="s"))
            async for event in stream:
                if isinstance(event, Text):
                    break
            await stream.aclose()
            assert one(service).in_flight == 0
            await until(lambda: store.cancels() == ["s"])
            assert service.counters.requests == {("a", CANCELLED.code): 1}
            assert joined_text(await ask(service, "2", id="next")) == "0 1 "

    run(story())


def test_close_before_the_first_event_does_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(FakeStore(tmp_path, a="good")) as service:
            await service.ask(request("1")).aclose()
            assert service.loaded() == []

    run(story())


def test_stream_read_no_further_than_the_last_event_holds_no_lease(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(FakeStore(tmp_path, a="good")) as service:
            stream = service.ask(request("1"))
            async for event in stream:
                if isinstance(event, Finished):
                    break
            assert one(service).in_flight == 0
            assert service.counters.requests == {}
            await stream.aclose()
            assert service.counters.requests == {("a", "ok"): 1}

    run(story())


async def cancel(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# death


def test_kill_in_mid_stream_fails_its_requests_and_the_next_one_works(tmp_path: Path) -> None:
    async def story() -> None:
        store = FakeStore(tmp_path, a="good", b="good")
        async with serving(store, max_loaded=2) as service:
            bystander = service.ask(request("5", model="b"))
            events = [await anext(bystander)]
            asking = [asyncio.create_task(ask(service, "stall", id=f"r{n}")) for n in range(4)]
            await until(lambda: in_flight(service) == 4)
            pid = one(service).pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            for each in asking:
                answer = await each
                assert kinds(answer).count("Failed") == 1
                assert isinstance(answer[-1], Failed)
                assert answer[-1].error.code == RUNNER_DIED.code
                assert answer[-1].error.message == "the engine of a died (SIGKILL)"
            assert joined_text(await ask(service, "3", id="next")) == "0 1 2 "
            events += [event async for event in bystander]
            assert joined_text(events) == "0 1 2 3 4 "
            assert service.counters.deaths == {"a": 1}
            assert service.counters.requests["a", RUNNER_DIED.code] == 4
            assert store.loads() == ["b", "a", "a"]

    run(story())


@pytest.mark.parametrize("end", ["kill", "exit", "garbage", "partial"])
def test_deaths_with_good_requests_between_are_followed_by_no_pause(tmp_path: Path, end: str) -> None:
    async def story() -> None:
        async with serving(FakeStore(tmp_path, a="good")) as service:
            for _ in range(3):
                assert kinds(await ask(service, end))[-1] == "Failed"
                assert joined_text(await ask(service, "1")) == "0 "

    run(story())


def test_load_that_fails_tells_all_who_wait_and_a_later_request_tries_again(tmp_path: Path) -> None:
    async def story() -> None:
        store = FakeStore(tmp_path, a="gate-fails")
        async with serving(store) as service:
            asking = [asyncio.create_task(refused(service, id=f"r{n}")) for n in range(3)]
            await until(lambda: service.waiting == 3)
            (tmp_path / "open").touch()
            for each in asking:
                assert (await each).message == "the model needs 9 GB and 2 GB are free"
            await until(lambda: service.loaded() == [])
            assert service.counters.load_failures == {"a": 1}
            store.change("a", path=tmp_path / "good.gguf")
            assert joined_text(await ask(service, "1")) == "0 "

    run(story())


def test_load_that_dies_again_and_again_is_not_tried_in_a_hot_loop(tmp_path: Path) -> None:
    async def story() -> None:
        store = FakeStore(tmp_path, a="dies")
        async with serving(store) as service:
            errors = [await refused(service, id=f"r{n}") for n in range(50)]
            assert {error.kind for error in errors} == {RUNNER_DIED}
            assert all("died while loading (SIGABRT)" in error.message for error in errors)
            assert errors[-1].details["retry_after"] >= 1
            assert store.loads() == ["a", "a"]

    run(story())


def test_stream_left_open_when_the_loop_ends_is_closed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:

    async def story() -> Service:
        async with serving(FakeStore(tmp_path, a="good")) as service:
            stream = service.ask(request("stall"))
            await anext(stream)
            kept.append(stream)
            return service

    kept: list[Any] = []
    service = run(story())
    assert service.counters.requests == {("a", CANCELLED.code): 1}
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
