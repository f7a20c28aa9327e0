"""The daemon's front with real child processes: what clients see, and what is left when they go."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import psutil
import pytest

from llmrun.errors import (
    CONFLICT,
    NO_MEMORY,
    OVERLOADED,
    SHUTTING_DOWN,
    UNKNOWN_MODEL,
    LlmrunError,
)
from llmrun.types import Failed, Finished, Options, TokenizeRequest
from tests.daemon.fakes import FakeStore, kinds, request, run, until
from tests.daemon.serving import ask, in_flight, one, refused, serving
from tests.support.events import joined_text


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


def test_lookup_is_counted_but_its_times_are_no_generations(tmp_path: Path) -> None:
    async def story() -> None:
        seen: list[tuple[str, Finished]] = []
        async with serving(FakeStore(tmp_path, a="good")) as service:
            service.observe(lambda model, finished: seen.append((model, finished)))
            request = TokenizeRequest(id="t", model="a", text="x", keep_alive=0)
            assert kinds([event async for event in service.ask(request)]) == ["Tokenized", "Finished"]
            assert service.counters.requests == {("a", "ok"): 1}
            assert seen == []
            await until(lambda: service.loaded() == [])  # keep_alive holds for it too

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
            assert cold.timings.load_ms == pytest.approx(cold.timings.queue_ms - 1)
            assert warm.timings.queue_ms < cold.timings.queue_ms
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
            stream = service.ask(request("5", id="first"))
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


def test_load_has_the_model_ready_and_leaves_it_for_the_requests_time(tmp_path: Path) -> None:
    async def story() -> None:
        store = FakeStore(tmp_path, a="good")
        async with serving(store) as service:
            wish = msgspec.structs.replace(request("", model="a"), keep_alive=50.0)
            await service.load(wish)
            model = one(service)
            assert (model.state, model.in_flight, model.keep_alive) == ("ready", 0, 50.0)
            assert model.expires_at is not None
            assert 40 < model.expires_at - model.since < 80
            assert service.counters.requests == {}
            await service.load(wish)
            assert store.loads() == ["a"]

    run(story())


def test_let_go_unloads_an_idle_model_before_it_returns(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(FakeStore(tmp_path, a="good")) as service:
            await service.let_go("a")
            await ask(service, "1")
            await service.let_go("a")
            assert service.loaded() == []

    run(story())


def test_let_go_lets_a_running_answer_end(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(FakeStore(tmp_path, a="good")) as service:
            stream = service.ask(request("2", model="a"))
            await anext(stream)
            await service.let_go("a")
            assert in_flight(service) == 1
            assert joined_text([event async for event in stream]) == "0 1 "
            await until(lambda: service.loaded() == [])

    run(story())


def test_remove_unloads_the_model_that_is_gone(tmp_path: Path) -> None:
    async def story() -> None:
        store = FakeStore(tmp_path, a="good")
        async with serving(store) as service:
            await ask(service, "1")
            assert (await service.remove("a")).name == "a"
            assert service.loaded() == []
            assert (await refused(service)).kind is UNKNOWN_MODEL

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
            stream = service.ask(request("options", options=options))
            assert joined_text([event async for event in stream]) == "0.7 5 2048 ('A', 'B')"
            assert one(service).info is not None
            assert one(service).info.ctx == 2048  # type: ignore[union-attr]

    run(story())


def test_larger_context_loads_anew_and_then_serves_both(tmp_path: Path) -> None:
    async def story() -> None:
        store = FakeStore(tmp_path, a="good")
        async with serving(store, ctx=1024) as service:
            await ask(service, "1")
            stream = service.ask(request("1", id="large", options=Options(ctx=4096)))
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
            stream = service.ask(request("stall", id="same"))
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
