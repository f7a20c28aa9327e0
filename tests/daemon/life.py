"""One runner process with its owner, and what its tests do with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil

from llmrun.daemon.child import Patience
from llmrun.daemon.process import Limits, RunnerProcess
from llmrun.daemon.replies import Reply
from llmrun.daemon.states import State
from llmrun.errors import SHUTTING_DOWN, LlmrunError
from llmrun.runner.frames import Load, ModelInfo
from llmrun.types import Event, Failed, Text
from tests.daemon.fakes import COMMAND, LIMITS, kinds, until

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


async def anext_text(reply: Reply) -> Event:
    async for event in reply:
        if isinstance(event, Text):
            return event
    raise AssertionError("no text")
