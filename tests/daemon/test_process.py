"""The life of a runner process, with a real child that speaks the real frames."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from llmrun.daemon.child import Patience
from llmrun.daemon.process import Limits, RunnerProcess
from llmrun.daemon.replies import Reply
from llmrun.daemon.states import State
from llmrun.errors import MODEL_LOAD, NO_MEMORY, RUNNER_DIED, SHUTTING_DOWN, LlmrunError
from llmrun.runner.frames import Load, ModelInfo
from llmrun.types import Event, Failed, Finished, Text, joined_text
from tests.daemon.fakes import COMMAND, LIMITS, kinds, request, run, until

STOP = LlmrunError(SHUTTING_DOWN, "enough")
HASTY = Limits(load_stall=20, patience=Patience(end_of_file=0.2, terminate=0.2, kill=10, output=2))


class Life:
    """A runner process and the task that owns it."""

    def __init__(self, folder: Path, script: str, limits: Limits, command: list[str]) -> None:
        load = Load(name="a", path=str(folder / f"{script}.gguf"))
        self.process = RunnerProcess(load, command=command, limits=limits)
        self.infos: list[ModelInfo] = []
        self.owner = asyncio.create_task(self.process.run(self.infos.append))

    async def ready(self) -> RunnerProcess:
        await until(lambda: self.infos)
        return self.process

    async def end(self) -> LlmrunError | None:
        return await self.owner


@asynccontextmanager
async def living(
    folder: Path, script: str = "good", limits: Limits = LIMITS, command: list[str] = COMMAND
) -> AsyncIterator[Life]:
    """However the test ends, no child may be left: none alive, none unreaped, no pipe open."""
    me = psutil.Process()
    open_before = me.num_fds()
    life = Life(folder, script, limits, command)
    try:
        yield life
    finally:
        life.process.stop(STOP)
        await asyncio.wait([life.owner])
    assert me.children(recursive=True) == []
    await until(lambda: me.num_fds() <= open_before)
    assert life.process.state is State.DEAD


async def collect(reply: Reply) -> list[Event]:
    return [event async for event in reply]


def failure(events: list[Event]) -> Any:
    """The error of the one last event."""
    assert kinds(events).count("Failed") == 1
    assert isinstance(events[-1], Failed)
    return events[-1].error


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


async def anext_text(reply: Reply) -> Event:
    async for event in reply:
        if isinstance(event, Text):
            return event
    raise AssertionError("no text")


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


# loading


def test_load_that_fails_gives_its_own_error(tmp_path: Path) -> None:
    async def story() -> None:
        async with living(tmp_path, "fails") as life:
            error = await life.end()
            assert error is not None
            assert error.kind is NO_MEMORY
            assert error.message == "the model needs 9 GB and 2 GB are free"
            assert life.infos == []

    run(story())


def test_death_while_loading_is_reported_with_the_log(tmp_path: Path) -> None:
    async def story() -> None:
        async with living(tmp_path, "dies") as life:
            error = await life.end()
            assert error is not None
            assert error.message == "the engine of a died while loading (SIGABRT)"
            assert "GGML_ASSERT(ctx) failed" in error.details["log"]

    run(story())


def test_load_without_progress_is_given_up(tmp_path: Path) -> None:
    async def story() -> None:
        limits = Limits(load_stall=0.3, patience=HASTY.patience)
        async with living(tmp_path, "hangs", limits) as life:
            error = await life.end()
            assert error is not None
            assert error.kind is MODEL_LOAD
            assert "no progress in loading for 0.3 s" in error.message

    run(story())


def test_load_that_is_slow_but_goes_on_is_waited_for(tmp_path: Path) -> None:
    async def story() -> None:
        limits = Limits(load_stall=1.2, patience=HASTY.patience)  # it takes 1.8 s in steps of 0.15
        async with living(tmp_path, "crawls", limits) as life:
            await life.ready()

    run(story())


def test_command_that_cannot_start_is_an_error(tmp_path: Path) -> None:
    async def story() -> None:
        async with living(tmp_path, command=[str(tmp_path / "none")]) as life:
            error = await life.end()
            assert error is not None
            assert error.kind is MODEL_LOAD
            assert "cannot be started" in error.message

    run(story())


def test_program_that_is_no_runner_is_an_error(tmp_path: Path) -> None:
    async def story() -> None:
        async with living(tmp_path, command=[sys.executable, "-c", "print('hello')"]) as life:
            error = await life.end()
            assert error is not None
            assert error.kind is RUNNER_DIED

    run(story())


# ending


def test_stop_fails_requests_in_flight_with_its_error_at_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with living(tmp_path) as life:
            process = await life.ready()
            reply = process.submit(request("stall"))
            await anext_text(reply)
            process.stop(STOP)
            assert failure(await collect(reply)).message == "enough"
            assert failure(await collect(process.submit(request("3", id="late")))).message == "enough"
            assert await life.end() is None

    run(story())


@pytest.mark.parametrize("script", ["good", "deaf"])
def test_stop_needs_no_signal_where_the_runner_obeys(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, script: str
) -> None:
    async def story() -> None:
        async with living(tmp_path, script) as life:
            (await life.ready()).stop(STOP)
            assert await life.end() is None

    caplog.set_level(logging.WARNING, "llmrun")
    run(story())
    assert caplog.messages == []


@pytest.mark.parametrize("script", ["hangs", "gate"])
def test_stop_while_loading_ends_the_child(tmp_path: Path, script: str) -> None:
    async def story() -> None:
        async with living(tmp_path, script, HASTY) as life:
            await until(lambda: life.process.progress)
            life.process.stop(STOP)
            assert await life.end() is None
            assert life.infos == []

    run(story())


def test_stop_before_the_child_exists_starts_none(tmp_path: Path) -> None:
    async def story() -> None:
        async with living(tmp_path) as life:
            life.process.stop(STOP)
            assert await life.end() is None
            assert life.process.pid is None

    run(story())


def test_stop_of_a_runner_that_will_not_end_kills_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with living(tmp_path, "stubborn", HASTY) as life:
            process = await life.ready()
            process.stop(STOP)
            assert await life.end() is None
            assert not psutil.pid_exists(process.pid or 0)

    caplog.set_level(logging.WARNING, "llmrun")
    run(story())
    assert [message[-7:] for message in caplog.messages] == ["SIGTERM", "SIGKILL"]


def test_stop_of_a_stopped_process_kills_it(tmp_path: Path) -> None:
    async def story() -> None:
        async with living(tmp_path, limits=HASTY) as life:
            process = await life.ready()
            assert process.pid is not None
            os.kill(process.pid, signal.SIGSTOP)
            reply = process.submit(request("3" * 100_000))  # more than the pipe holds
            process.stop(STOP)
            assert failure(await collect(reply)).message == "enough"
            assert await life.end() is None

    run(story())


def test_cancelled_owner_leaves_no_child(tmp_path: Path) -> None:
    async def story() -> None:
        limits = Limits(patience=Patience(end_of_file=100))
        async with living(tmp_path, "stubborn", limits) as life:
            process = await life.ready()
            life.owner.cancel()
            await asyncio.wait([life.owner])
            assert life.owner.cancelled()
            assert not psutil.pid_exists(process.pid or 0)

    run(story())


def test_child_leads_its_own_session(tmp_path: Path) -> None:
    async def story() -> None:
        async with living(tmp_path) as life:
            process = await life.ready()
            assert process.pid is not None
            assert os.getsid(process.pid) == process.pid

    run(story())


def test_child_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    """A daemon in miniature, killed with SIGKILL: the runner sees end of file and goes."""
    program = f"""
import asyncio, sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from llmrun.daemon.process import RunnerProcess
from llmrun.runner.frames import Load
async def main():
    process = RunnerProcess(Load(name="a", path={str(tmp_path / "good.gguf")!r}), command={COMMAND!r})
    await process.run(lambda info: print(process.pid, flush=True))
asyncio.run(main())
"""

    async def story() -> None:
        daemon = await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE
        )
        assert daemon.stdout is not None
        runner = int(await daemon.stdout.readline())
        assert psutil.pid_exists(runner)
        daemon.kill()
        await daemon.wait()
        await until(lambda: not psutil.pid_exists(runner) or _is_zombie(runner))

    run(story())


def _is_zombie(pid: int) -> bool:
    """Ended, and not reaped yet by whoever adopted it."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_failure_of_the_runner_is_passed_on(tmp_path: Path) -> None:
    async def story() -> None:
        async with living(tmp_path) as life:
            process = await life.ready()
            assert failure(await collect(process.submit(request("fail")))).code == NO_MEMORY.code

    run(story())
