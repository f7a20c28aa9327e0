"""How runner processes load, fail and end, with a real child that speaks the real frames."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from llmrun.daemon.child import Patience
from llmrun.daemon.process import Limits
from llmrun.daemon.states import State
from llmrun.daemon.vitals import Bounds
from llmrun.errors import MODEL_LOAD, NO_MEMORY, RUNNER_DIED
from tests.daemon.fakes import COMMAND, request, run, until
from tests.daemon.life import HASTY, STOP, anext_text, collect, failure, living


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


def test_death_for_want_of_memory_says_so(tmp_path: Path) -> None:
    async def story() -> None:
        async with living(tmp_path, "starves") as life:
            error = await life.end()
            assert error is not None
            assert error.kind is NO_MEMORY
            assert error.message == "memory ran out: the engine of a died while loading (exit code 1)"

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
        limits = Limits(load_stall=4, patience=HASTY.patience)  # it takes 4.8 s in steps of 0.4
        async with living(tmp_path, "crawls slowly", limits) as life:
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


BRISK = Limits(patience=HASTY.patience, bounds=Bounds(quiet=0.1, silence=2, standstill=60))
TOLERANT = Limits(patience=HASTY.patience, bounds=Bounds(quiet=0.1, silence=3, standstill=60))


def pings(folder: Path) -> int:
    """How often the runner was asked for a sign of life."""
    noted = folder / "pings"
    return len(noted.read_text().split()) if noted.exists() else 0


def test_stopped_process_is_stuck_ends_its_requests_and_is_killed(tmp_path: Path) -> None:
    async def story() -> None:
        async with living(tmp_path, limits=BRISK) as life:
            process = await life.ready()
            reply = process.submit(request("stall"))
            await anext_text(reply)
            assert process.pid is not None
            os.kill(process.pid, signal.SIGSTOP)
            error = failure(await collect(reply))
            assert error.code == RUNNER_DIED.code
            assert "was ended, as it gave no sign of life for" in error.message
            end = await life.end()
            assert end is not None
            assert end.message == error.message

    run(story())


def test_process_that_answers_when_asked_is_not_stuck_however_long_it_says_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with living(tmp_path, limits=TOLERANT) as life:
            process = await life.ready()
            reply = process.submit(request("stall"))
            await anext_text(reply)
            # The second comes when the time for an answer to the first is over.
            await until(lambda: pings(tmp_path) >= 2)
            assert process.state is State.READY

    run(story())


def test_process_that_answers_and_makes_no_progress_is_given_up(tmp_path: Path) -> None:
    async def story() -> None:
        limits = Limits(patience=HASTY.patience, bounds=Bounds(quiet=0.1, silence=20, standstill=0.6))
        async with living(tmp_path, limits=limits) as life:
            process = await life.ready()
            error = failure(await collect(process.submit(request("stall"))))
            assert "made no progress for 0.6 s" in error.message

    run(story())


def test_process_without_work_is_left_alone(tmp_path: Path) -> None:
    async def story() -> None:
        async with living(tmp_path, "frozen", BRISK) as life:
            process = await life.ready()
            await collect(process.submit(request("3")))
            await until(lambda: process._next_look is None)  # nothing will look again
            assert process.state is State.READY
            await collect(process.submit(request("3", id="second")))
            assert pings(tmp_path) == 0

    run(story())
