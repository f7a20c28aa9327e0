"""The daemon's front with real child processes: what clients see, and what is left when they go."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from llmrun.config import Settings
from llmrun.daemon.pool import LoadedModel
from llmrun.daemon.service import Service, content_version, prepare
from llmrun.errors import (
    CANCELLED,
    CONFLICT,
    INVALID_REQUEST,
    NO_MEMORY,
    OVERLOADED,
    RUNNER_DIED,
    SHUTTING_DOWN,
    UNKNOWN_MODEL,
    LlmrunError,
)
from llmrun.store import StoredModel
from llmrun.types import Event, Failed, Finished, GenerateRequest, Message, Options, Text, joined_text
from tests.daemon.fakes import COMMAND, LIMITS, FakeStore, kinds, request, run, stored, until


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
    return [event async for event in service.generate(request(prompt, model=model, id=id))]


async def refused(service: Service, prompt: str = "1", model: str = "a", id: str = "x") -> LlmrunError:
    with pytest.raises(LlmrunError) as caught:
        await ask(service, prompt, model, id)
    return caught.value


def one(service: Service, name: str = "a") -> LoadedModel:
    (model,) = [model for model in service.loaded() if model.name == name]
    return model


def in_flight(service: Service, name: str = "a") -> int:
    return sum(model.in_flight for model in service.loaded() if model.name == name)


def test_stream_left_open_when_the_loop_ends_is_closed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:

    async def story() -> Service:
        async with serving(FakeStore(tmp_path, a="good")) as service:
            stream = service.generate(request("stall"))
            await anext(stream)
            kept.append(stream)
            return service

    kept: list[Any] = []
    service = run(story())
    assert service.counters.requests == {("a", CANCELLED.code): 1}
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def test_generate_loads_answers_and_counts(tmp_path: Path) -> None:
    async def story() -> None:
        seen: list[tuple[str, Finished]] = []
        async with serving(FakeStore(tmp_path, a="good")) as service:
            service.observe(lambda model, finished: seen.append((model, finished)))
            events = await ask(service, "3")
            assert kinds(events) == ["Started", "Text", "Text", "Text", "Stopped", "Finished"]
            assert seen == [("a", events[-1])]
            counters = service.counters
            assert counters.requests == {("a", "ok"): 1}
            assert counters.loads == {"a": 1}
            assert counters.prompt_tokens == {"a": 7}
            assert counters.cached_tokens == {"a": 2}
            assert counters.completion_tokens == {"a": 3}
            assert counters.deaths == counters.load_failures == {}

    run(story())


def test_generate_times_include_the_wait_for_the_load(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(FakeStore(tmp_path, a="crawls")) as service:
            cold = (await ask(service, "3"))[-1]
            warm = (await ask(service, "3", id="r2"))[-1]
            assert isinstance(cold, Finished)
            assert isinstance(warm, Finished)
            assert cold.timings.queue_ms > 1700  # it crawls for 1.8 s; the runner itself says 1 and 4 ms
            assert cold.timings.ttft_ms == pytest.approx(cold.timings.queue_ms + 3)
            assert warm.timings.queue_ms < 1700
            assert (warm.timings.prefill_ms, warm.timings.decode_ms, warm.timings.itl_ms) == (2, 3, 5)

    run(story())


def test_generate_unknown_model_raises_and_counts_without_its_name(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(FakeStore(tmp_path, a="good")) as service:
            assert (await refused(service, model="b")).kind is UNKNOWN_MODEL
            assert service.counters.requests == {("", UNKNOWN_MODEL.code): 1}
            assert service.loaded() == []

    run(story())


def test_twenty_first_requests_make_one_load(tmp_path: Path) -> None:
    async def story() -> None:
        store = FakeStore(tmp_path, a="gate")
        async with serving(store) as service:
            asking = [asyncio.create_task(ask(service, str(n), id=f"r{n}")) for n in range(20)]
            await until(lambda: service.waiting == 20)
            assert one(service).state == "loading"
            (tmp_path / "open").touch()
            answers = [joined_text(await each) for each in asking]
            assert answers == ["".join(f"{i} " for i in range(n)) for n in range(20)]
            assert store.loads() == ["a"]

    run(story())


def test_two_models_run_side_by_side(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(FakeStore(tmp_path, a="good", b="good"), max_loaded=2) as service:
            texts = await asyncio.gather(ask(service, "2", "a"), ask(service, "3", "b"))
            assert [joined_text(events) for events in texts] == ["0 1 ", "0 1 2 "]
            assert [model.name for model in service.loaded()] == ["a", "b"]
            assert one(service, "a").pid != one(service, "b").pid

    run(story())


def test_full_house_waits_for_the_stream_then_loads_the_other(tmp_path: Path) -> None:
    async def story() -> None:
        store = FakeStore(tmp_path, a="good", b="good")
        async with serving(store, max_loaded=1) as service:
            stream = service.generate(request("5", id="first"))
            events = [await anext(stream)]
            other = asyncio.create_task(ask(service, "1", "b"))
            await until(lambda: service.waiting == 1)
            assert store.loads() == ["a"]
            events += [event async for event in stream]
            assert joined_text(events) == "0 1 2 3 4 "
            assert joined_text(await other) == "0 "
            assert store.loads() == ["a", "b"]
            assert [model.name for model in service.loaded()] == ["b"]

    run(story())


def test_keep_alive_zero_unloads_at_once(tmp_path: Path) -> None:
    async def story() -> None:
        store = FakeStore(tmp_path, a="good")
        async with serving(store, keep_alive=0.0) as service:
            await ask(service, "1")
            await until(lambda: service.loaded() == [])
            await ask(service, "1", id="again")
            assert store.loads() == ["a", "a"]

    run(story())


def test_keep_alive_unloads_after_its_time(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(FakeStore(tmp_path, a="good"), keep_alive=0.1) as service:
            await ask(service, "1")
            await until(lambda: service.loaded() == [])

    run(story())


def test_keep_alive_is_told_as_a_time_of_day(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(FakeStore(tmp_path, a="good"), keep_alive=300.0) as service:
            await ask(service, "1")
            model = one(service)
            assert model.expires_at is not None
            assert 290 < model.expires_at - model.since < 330
            assert model.info is not None
            assert model.stats is not None
            assert (model.state, model.progress, model.in_flight) == ("ready", 1.0, 0)

    run(story())


def test_queue_full_is_overloaded(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(FakeStore(tmp_path, a="gate"), max_queue=1, parallel=1) as service:
            asking = [asyncio.create_task(ask(service, "1", id=f"r{n}")) for n in range(2)]
            await until(lambda: service.waiting == 2)
            error = await refused(service)
            assert error.kind is OVERLOADED
            assert error.details["retry_after"] >= 1
            (tmp_path / "open").touch()
            await asyncio.gather(*asking)
            assert joined_text(await ask(service, "1", id="later")) == "0 "

    run(story())


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


def test_cancel_while_waiting_for_room_leaves_the_other_loaded(tmp_path: Path) -> None:
    async def story() -> None:
        store = FakeStore(tmp_path, a="good", b="good")
        async with serving(store, max_loaded=1) as service:
            stream = service.generate(request("stall"))
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
            stream = service.generate(request("stall", id="s"))
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
            await service.generate(request("1")).aclose()
            assert service.loaded() == []

    run(story())


def test_stream_read_no_further_than_the_last_event_holds_no_lease(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(FakeStore(tmp_path, a="good")) as service:
            stream = service.generate(request("1"))
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
            bystander = service.generate(request("5", model="b"))
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


# stop and close


def test_stop_ends_running_and_waiting_requests_and_frees_the_memory(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(FakeStore(tmp_path, a="good", b="gate"), max_loaded=2) as service:
            running = asyncio.create_task(ask(service, "stall", "a"))
            waiting = asyncio.create_task(refused(service, "1", "b"))
            await until(lambda: in_flight(service) and service.waiting)
            assert await service.stop(None) == ["a", "b"]
            assert psutil.Process().children() == []
            last = (await running)[-1]
            assert isinstance(last, Failed)
            assert last.error.code == SHUTTING_DOWN.code
            assert last.error.message == "a was stopped"
            assert (await waiting).message == "b was stopped"
            assert await service.stop(None) == []
            assert await service.stop("a") == []
            assert joined_text(await ask(service, "1", "a", id="next")) == "0 "

    run(story())


def test_stop_of_an_unknown_model_is_an_error(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(FakeStore(tmp_path, a="good")) as service:
            with pytest.raises(LlmrunError) as caught:
                await service.stop("zzz")
            assert caught.value.kind is UNKNOWN_MODEL

    run(story())


def test_close_fails_what_runs_and_what_comes_later(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(FakeStore(tmp_path, a="good")) as service:
            running = asyncio.create_task(ask(service, "stall"))
            await until(lambda: in_flight(service))
            await service.close()
            assert psutil.Process().children() == []
            last = (await running)[-1]
            assert isinstance(last, Failed)
            assert last.error.code == SHUTTING_DOWN.code
            assert (await refused(service)).kind is SHUTTING_DOWN

    run(story())


# what goes down to the runner


def test_request_options_beat_the_models(tmp_path: Path) -> None:
    async def story() -> None:
        store = FakeStore(tmp_path, a="good")
        store.change("a", options=Options(temperature=0.1, top_k=5, ctx=2048, stop=("A",)))
        async with serving(store) as service:
            options = Options(temperature=0.7, stop=("B",))
            stream = service.generate(request("options", options=options))
            assert joined_text([event async for event in stream]) == "0.7 5 2048 ('A', 'B')"
            assert one(service).info is not None
            assert one(service).info.ctx == 2048  # type: ignore[union-attr]

    run(story())


def test_larger_context_loads_anew_and_then_serves_both(tmp_path: Path) -> None:
    async def story() -> None:
        store = FakeStore(tmp_path, a="good")
        async with serving(store, ctx=1024) as service:
            await ask(service, "1")
            stream = service.generate(request("1", id="large", options=Options(ctx=4096)))
            assert joined_text([event async for event in stream]) == "0 "
            await ask(service, "1", id="small")
            assert store.loads() == ["a", "a"]
            assert one(service).info.ctx == 4096  # type: ignore[union-attr]

    run(story())


def test_model_whose_file_changed_is_loaded_anew(tmp_path: Path) -> None:
    async def story() -> None:
        store = FakeStore(tmp_path, a="good")
        async with serving(store) as service:
            await ask(service, "1")
            store.change("a", sha256="1" * 64)
            await ask(service, "1", id="r2")
            assert store.loads() == ["a", "a"]

    run(story())


def test_id_in_use_is_a_conflict(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(FakeStore(tmp_path, a="good")) as service:
            stream = service.generate(request("stall", id="same"))
            await anext(stream)
            assert (await refused(service, id="same")).kind is CONFLICT
            await stream.aclose()

    run(story())


def test_failure_of_the_engine_is_counted_by_its_code(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(FakeStore(tmp_path, a="good")) as service:
            assert kinds(await ask(service, "fail")) == ["Started", "Failed"]
            assert service.counters.requests == {("a", NO_MEMORY.code): 1}

    run(story())


def chat(*messages: Message) -> GenerateRequest:
    return GenerateRequest(id="r", model="A", messages=messages)


USER = Message(role="user", content="hi")


def test_prepare_puts_the_system_prompt_in_front() -> None:
    prepared, _ = prepare(chat(USER), model(system="be brief"), "1", Settings())
    assert prepared.messages == (Message(role="system", content="be brief"), USER)


@pytest.mark.parametrize("at", [0, 1])
def test_prepare_leaves_a_conversation_with_a_system_message(at: int) -> None:
    messages = [USER, USER]
    messages.insert(at, Message(role="system", content="mine"))
    prepared, _ = prepare(chat(*messages), model(system="be brief"), "1", Settings())
    assert prepared.messages == tuple(messages)


def test_prepare_leaves_a_raw_prompt() -> None:
    raw = request("text")
    prepared, _ = prepare(raw, model(system="be brief"), "1", Settings())
    assert prepared == msgspec.structs.replace(raw, model="a")


def test_prepare_asks_for_what_settings_and_model_say() -> None:
    settings = Settings(parallel=3, ctx=512, kv_type="q8_0", gpu_layers=4, threads=2)
    prepared, wanted = prepare(chat(USER), model(template="{{ x }}"), "1", settings)
    load = wanted.load
    assert prepared.model == load.name == wanted.name == "a"
    assert (load.path, load.template) == ("/models/a.gguf", "{{ x }}")
    assert (load.ctx, load.parallel, load.kv_type, load.gpu_layers, load.threads) == (512, 3, "q8_0", 4, 2)


@pytest.mark.parametrize(
    ("requested", "models", "used"), [(None, None, 100), (None, 200, 200), (300, 200, 300)]
)
def test_prepare_takes_the_context_of_the_nearest(
    requested: int | None, models: int | None, used: int
) -> None:
    asked = msgspec.structs.replace(chat(USER), options=Options(ctx=requested))
    assert prepare(asked, model(options=Options(ctx=models)), "1", Settings(ctx=100))[1].load.ctx == used


def test_content_version_is_the_digest() -> None:
    assert content_version(model(sha256="abc")) == "abc"


def test_content_version_without_a_digest_changes_with_the_file(tmp_path: Path) -> None:
    shards = (tmp_path / "1.gguf", tmp_path / "2.gguf")
    for shard in shards:
        shard.write_bytes(b"GGUF")
    in_place = stored(shards[0], files=shards, sha256=None)
    before = content_version(in_place)
    assert content_version(in_place) == before
    os.utime(shards[1], (1, 1))
    assert content_version(in_place) != before


def test_prepare_refuses_to_let_an_embedding_model_write() -> None:
    with pytest.raises(LlmrunError) as caught:
        prepare(chat(USER), model(kind="embedding"), "1", Settings())
    assert caught.value.kind is INVALID_REQUEST
    assert caught.value.field == "model"


def model(**values: Any) -> StoredModel:
    return stored(Path("/models/a.gguf"), **values)
