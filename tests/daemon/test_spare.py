"""The spare runner with real child processes: taken once, or ended."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import psutil

from llmrun.config import Settings
from llmrun.daemon.process import RunnerProcess
from llmrun.daemon.service import Service
from llmrun.daemon.spare import Spare
from llmrun.runner.frames import Load
from tests.daemon.fakes import COMMAND, LIMITS, FakeStore, kinds, request, run, until
from tests.daemon.life import HASTY, STOP, collect
from tests.daemon.serving import ask, one


@asynccontextmanager
async def started(command: Sequence[str] = COMMAND, wait: float = 60) -> AsyncIterator[Spare]:
    """However the test ends, no child and no pipe may be left."""
    me = psutil.Process()
    open_before = me.num_fds()
    spare = Spare(command, wait=wait, patience=HASTY.patience)
    await spare.start()
    try:
        yield spare
    finally:
        await spare.close()
    assert me.children(recursive=True) == []
    await until(lambda: me.num_fds() <= open_before)


def child() -> psutil.Process:
    (found,) = psutil.Process().children()
    return found


def nothing(*_: object) -> None:
    pass


def test_spare_serves_the_first_model_and_no_second(tmp_path: Path) -> None:
    async def story() -> None:
        async with started() as spare:
            pid = child().pid
            store = FakeStore(tmp_path, a="good", b="good")
            service = Service(store, Settings(), command=COMMAND, limits=LIMITS, spare=spare)
            try:
                assert kinds(await ask(service, "1", "a"))[-1] == "Finished"
                assert kinds(await ask(service, "1", "b"))[-1] == "Finished"
                assert one(service, "a").pid == pid
                assert one(service, "b").pid != pid
            finally:
                await service.close()
            assert not psutil.pid_exists(pid)

    run(story())


def test_spare_taken_is_not_ended_when_its_time_is_over(tmp_path: Path) -> None:
    async def story() -> None:
        async with started(wait=0.3) as spare:
            load = Load(name="a", path=str(tmp_path / "good.gguf"))
            process = RunnerProcess(load, command=COMMAND, limits=LIMITS, spare=spare)
            ready = asyncio.Event()
            owner = asyncio.create_task(process.run(lambda _: ready.set()))
            await ready.wait()
            await asyncio.sleep(0.5)
            assert kinds(await collect(process.submit(request("1"))))[-1] == "Finished"
            process.stop(STOP)
            assert await owner is None

    run(story())


def test_spare_that_nobody_takes_is_ended_after_a_while() -> None:
    async def story() -> None:
        async with started(wait=0.1) as spare:
            await until(lambda: not psutil.Process().children())
            assert spare.take(nothing, nothing) is None

    run(story())


def test_spare_that_ignores_its_end_is_killed() -> None:
    program = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"

    async def story() -> None:
        async with started([sys.executable, "-c", program]):
            pass

    run(story())


def test_spare_killed_is_reaped_and_a_load_starts_another(tmp_path: Path) -> None:
    async def story() -> None:
        async with started() as spare:
            pid = child().pid
            os.kill(pid, signal.SIGKILL)
            await until(lambda: not psutil.pid_exists(pid))
            service = Service(
                FakeStore(tmp_path, a="good"), Settings(), command=COMMAND, limits=LIMITS, spare=spare
            )
            try:
                assert kinds(await ask(service, "1"))[-1] == "Finished"
            finally:
                await service.close()

    run(story())


def test_spare_what_it_said_before_it_was_taken_is_told() -> None:
    program = "import os, sys; os.write(2, b'early'); sys.stdin.read(); os.write(1, b'late')"

    async def story() -> None:
        async with started([sys.executable, "-c", program]) as spare:
            heard: list[tuple[int, bytes]] = []
            over = asyncio.Event()
            await until(lambda: spare._said)
            taken = spare.take(lambda fd, data: heard.append((fd, data)), over.set)
            assert taken is not None
            before, was_over = heard.copy(), over.is_set()
            assert await taken.end(HASTY.patience) == 0
            taken.close()
            assert (before, was_over) == ([(2, b"early")], False)
            assert (heard, over.is_set()) == ([(2, b"early"), (1, b"late")], True)

    run(story())


def test_spare_that_cannot_be_started_is_none(tmp_path: Path) -> None:
    async def story() -> None:
        async with started([str(tmp_path / "none")]) as spare:
            assert spare.take(nothing, nothing) is None

    run(story())
