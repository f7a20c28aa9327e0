"""A runner process in use, with a real child that speaks the real frames."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from llmrun.daemon.child import Patience
from llmrun.daemon.process import Limits
from llmrun.daemon.states import State
from llmrun.errors import NO_MEMORY, RUNNER_DIED
from llmrun.types import Finished, Text
from tests.daemon.fakes import kinds, request, run, until
from tests.daemon.life import STOP, anext_text, collect, failure, living
from tests.support.events import joined_text


def test_run_loads_serves_and_stops_when_asked(tmp_path: Path) -> None:
    async def story() -> None:
        async with living(tmp_path) as life:
            assert life.process.state is State.LOADING
            process = await life.ready()
            assert process.state is State.READY
            assert process.info == life.infos[0]
            assert process.progress == 1.0
            events = await collect(process.submit(request("3")))
            assert kinds(events) == ["Started", "Text", "Text", "Text", "Stopped", "Finished"]
            assert joined_text(events) == "0 1 2 "
            assert process.stats is not None
            assert process.stats.completion_tokens == 3
            process.stop(STOP)
            assert await life.end() is None

    run(story())


def test_submit_many_each_gets_its_own_events_though_one_is_never_read(tmp_path: Path) -> None:
    async def story() -> None:
        async with living(tmp_path) as life:
            process = await life.ready()
            unread = process.submit(request("2000", id="unread"))
            replies = [process.submit(request(str(n), id=f"r{n}")) for n in range(30)]
            texts = [joined_text(events) for events in await asyncio.gather(*map(collect, replies))]
            assert texts == ["".join(f"{i} " for i in range(n)) for n in range(30)]
            assert len(await collect(unread)) == 2003

    run(story())


@pytest.mark.parametrize(
    ("prompt", "cause"), [("kill", "SIGKILL"), ("segv", "SIGSEGV"), ("exit", "exit code 3")]
)
def test_death_ends_every_request_once_with_cause_and_log(tmp_path: Path, prompt: str, cause: str) -> None:
    async def story() -> None:
        async with living(tmp_path) as life:
            process = await life.ready()
            waiting = [process.submit(request("stall", id=f"w{n}")) for n in range(3)]
            *others, culprit = await asyncio.gather(
                *map(collect, [*waiting, process.submit(request(prompt, id="culprit"))])
            )
            assert joined_text(culprit) == "one"
            for events in [*others, culprit]:
                error = failure(events)
                assert error.code == RUNNER_DIED.code
                assert error.message == f"the engine of a died ({cause})"
                assert error.details["log"][-1] == f"llmrun.runner: about to {prompt}"
            end = await life.end()
            assert end is not None
            assert end.message == f"the engine of a died ({cause})"

    run(story())


def test_death_by_kill_from_outside_is_reported(tmp_path: Path) -> None:
    async def story() -> None:
        async with living(tmp_path) as life:
            process = await life.ready()
            reply = process.submit(request("stall"))
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)
            error = failure(await collect(reply))
            assert error.details["cause"] == "SIGKILL"
            assert "memory" in error.hint

    run(story())


def test_last_event_before_death_counts(tmp_path: Path) -> None:
    async def story() -> None:
        async with living(tmp_path) as life:
            process = await life.ready()
            finished, killed = process.submit(request("5")), process.submit(request("kill", id="k"))
            await life.end()
            assert isinstance((await collect(finished))[-1], Finished)
            assert kinds(await collect(killed)) == ["Started", "Text", "Failed"]

    run(story())


def test_submit_to_the_dead_fails_with_the_reason(tmp_path: Path) -> None:
    async def story() -> None:
        async with living(tmp_path) as life:
            process = await life.ready()
            await collect(process.submit(request("kill")))
            await life.end()
            assert failure(await collect(process.submit(request("3", id="late")))).code == RUNNER_DIED.code

    run(story())


@pytest.mark.parametrize(("prompt", "words"), [("garbage", "no frame"), ("partial", "inside a frame")])
def test_broken_stream_ends_the_runner_and_says_so(tmp_path: Path, prompt: str, words: str) -> None:
    async def story() -> None:
        async with living(tmp_path) as life:
            process = await life.ready()
            other = process.submit(request("stall"))
            events = await collect(process.submit(request(prompt, id="culprit")))
            assert words in failure(events).message
            assert joined_text(events) == "one"
            assert failure(await collect(other)).code == RUNNER_DIED.code
            assert await life.end() is not None

    run(story())


def test_broken_stream_ends_even_a_stubborn_runner_at_once(tmp_path: Path) -> None:
    async def story() -> None:
        limits = Limits(patience=Patience(end_of_file=100))
        async with living(tmp_path, "stubborn", limits) as life:
            process = await life.ready()
            assert failure(await collect(process.submit(request("garbage")))).code == RUNNER_DIED.code

    run(story())


def test_events_after_the_last_one_are_dropped(tmp_path: Path) -> None:
    async def story() -> None:
        async with living(tmp_path) as life:
            process = await life.ready()
            events = await collect(process.submit(request("twice")))
            assert kinds(events) == ["Started", "Text", "Stopped", "Finished"]
            assert joined_text(await collect(process.submit(request("1", id="next")))) == "0 "

    run(story())


def test_cancel_is_sent_and_late_events_are_dropped(tmp_path: Path) -> None:
    async def story() -> None:
        async with living(tmp_path) as life:
            process = await life.ready()
            reply = process.submit(request("stall"))
            assert isinstance(await anext_text(reply), Text)
            process.cancel(reply)
            process.cancel(reply)
            await until((tmp_path / "cancels").exists)
            assert joined_text(await collect(process.submit(request("2", id="next")))) == "0 1 "
            assert (tmp_path / "cancels").read_text().split() == ["r1"]

    run(story())


def test_cancel_of_an_ended_request_sends_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with living(tmp_path) as life:
            process = await life.ready()
            reply = process.submit(request("1"))
            await collect(reply)
            process.cancel(reply)
            await collect(process.submit(request("1", id="next")))
            assert not (tmp_path / "cancels").exists()

    run(story())


def test_failure_of_the_runner_is_passed_on(tmp_path: Path) -> None:
    async def story() -> None:
        async with living(tmp_path) as life:
            process = await life.ready()
            assert failure(await collect(process.submit(request("fail")))).code == NO_MEMORY.code

    run(story())
