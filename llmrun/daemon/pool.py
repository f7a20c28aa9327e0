"""The runners there are: carries out what the lease book decides.

In: models that requests want. Out: leases on ready runners. Knows processes and the event loop; why a
runner starts or stops is `leases`' business. Every runner's process is owned by one task here.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Sequence
from contextvars import Context
from dataclasses import dataclass

from llmrun.config import Settings
from llmrun.daemon.counters import Counters
from llmrun.daemon.leases import LeaseBook
from llmrun.daemon.process import Limits, RunnerProcess
from llmrun.daemon.room import Room
from llmrun.daemon.spare import COMMAND, Spare
from llmrun.daemon.states import State
from llmrun.daemon.wanted import Wanted
from llmrun.errors import INTERNAL, SHUTTING_DOWN, LlmrunError
from llmrun.runner.frames import ModelInfo
from llmrun.types import Stats

log = logging.getLogger(__name__)

Ticket = asyncio.Future[RunnerProcess]


class Lease:
    """`async with`: waits for a ready runner, and holds it as `runner`. LlmrunError where there will be none.

    Leaving, in whatever way and at whatever stage, gives the runner or the place in the queue back;
    `served` says then whether the request ended well. (A class, because a context manager that is an
    async generator would be closed a second time from outside when the loop ends.)
    """

    runner: RunnerProcess

    def __init__(self, book: LeaseBook[Ticket], wanted: Wanted) -> None:
        self.served = False
        self._book = book
        self._wanted = wanted
        self._ticket: Ticket = asyncio.get_running_loop().create_future()

    async def __aenter__(self) -> Lease:
        try:
            self._book.want(self._ticket, self._wanted)
            self.runner = await self._ticket
        except BaseException:
            self._give_back()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._give_back()

    def _give_back(self) -> None:
        if self._ticket.done() and not self._ticket.cancelled():
            self._ticket.exception()  # one that came together with a cancel would be complained about
        self._book.release(self._ticket, served=self.served)


@dataclass(frozen=True)
class LoadedModel:
    """A runner as `llmrun ps` shows it.

    state       `loading`, `ready` or `stopping`
    progress    fraction of the model loaded, 0 to 1
    since       unix seconds of its start
    expires_at  unix seconds at which it will be unloaded if it stays idle; None in use, or never
    in_flight   requests it has
    keep_alive  seconds that it stays once it is idle; None for ever
    """

    name: str
    state: str
    progress: float
    info: ModelInfo | None
    stats: Stats | None
    pid: int | None
    since: float
    expires_at: float | None
    in_flight: int
    keep_alive: float | None = None


@dataclass
class _Seat:
    """A process, the task that owns it, and its start in unix seconds."""

    process: RunnerProcess
    since: float
    task: asyncio.Task[None]


class RunnerPool:
    """See the module. To be created and used on one event loop. `start` to `wake_at` are `Effects`:
    for the book alone."""

    def __init__(
        self,
        settings: Settings,
        counters: Counters,
        *,
        command: Sequence[str] = COMMAND,
        limits: Limits | None = None,
        room: Room | None = None,
        spare: Spare | None = None,
    ) -> None:
        self._counters = counters
        self._command = command
        self._limits = limits
        self._spare = spare
        self._seats: dict[str, _Seat] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._book: LeaseBook[Ticket] = LeaseBook(
            self,
            room=room or Room(settings.max_loaded),
            clock=time.monotonic,
            keep_alive=settings.keep_alive,
            parallel=settings.parallel or 1,
            queue=settings.max_queue,
        )

    @property
    def waiting(self) -> int:
        """Requests that have no runner yet."""
        return self._book.waiting

    def lease(self, wanted: Wanted) -> Lease:
        """The right to use a runner of `wanted`, to be entered."""
        return Lease(self._book, wanted)

    def loaded(self) -> list[LoadedModel]:
        """Every runner there is, by name."""
        return [self._describe(name) for name in sorted(self._seats)]

    async def unload(self, name: str, error: LlmrunError) -> bool:
        """End a runner, its requests with `error`, and wait for its end; False where none runs."""
        seat = self._seats.get(name)
        if seat is None:
            return False
        self._book.stop(name, error)
        await asyncio.wait([seat.task])
        return True

    async def let_go(self, name: str) -> None:
        """End a runner once it has no request. Where it has none now, returns when it is gone."""
        self._book.let_go(name)
        resident = self._book.residents.get(name)
        if resident and resident.state is State.STOPPING:
            await asyncio.wait([self._seats[name].task])

    async def close(self) -> None:
        """End every runner and wait until they are gone; what comes later is refused."""
        self._book.close(LlmrunError(SHUTTING_DOWN, "the daemon is shutting down"))
        if self._timer:
            self._timer.cancel()
        if tasks := [seat.task for seat in self._seats.values()]:
            await asyncio.wait(tasks)

    def start(self, wanted: Wanted) -> None:
        log.info("loading %s", wanted.name)
        process = RunnerProcess(wanted.load, command=self._command, limits=self._limits, spare=self._spare)
        # It outlives the request that it is started for: its records are not that one's.
        name = f"runner {wanted.name}"
        task = Context().run(asyncio.get_running_loop().create_task, self._own(process), name=name)
        self._seats[wanted.name] = _Seat(process, time.time(), task)

    def stop(self, name: str, error: LlmrunError) -> None:
        self._seats[name].process.stop(error)

    def grant(self, ticket: Ticket, name: str) -> None:
        if not ticket.done():
            ticket.set_result(self._seats[name].process)

    def refuse(self, ticket: Ticket, error: LlmrunError) -> None:
        if not ticket.done():
            ticket.set_exception(error.again())

    def wake_at(self, when: float) -> None:
        if self._timer:
            self._timer.cancel()
        delay = max(0.0, when - time.monotonic())
        self._timer = asyncio.get_running_loop().call_later(delay, self._book.tick)

    async def _own(self, process: RunnerProcess) -> None:
        """A runner's whole life: whatever happens to it, the book hears of its end."""
        name = process.name
        began = time.monotonic()

        def ready(info: ModelInfo) -> None:
            log.info(
                "%s is ready after %.1f s (%d tokens of context)", name, time.monotonic() - began, info.ctx
            )
            self._counters.loads[name] += 1
            self._book.ready(name, info)

        try:
            error = await process.run(ready)
        except Exception as unexpected:
            log.exception("the owner of %s failed", name)
            error = LlmrunError(INTERNAL, f"the engine of {name} cannot be kept: {unexpected}")
        if error:
            log.error("%s", error.message)
            (self._counters.deaths if process.info else self._counters.load_failures)[name] += 1
        else:
            log.info("%s is unloaded", name)
        del self._seats[name]
        self._book.gone(name, error)

    def _describe(self, name: str) -> LoadedModel:
        seat = self._seats[name]
        resident = self._book.residents[name]
        expires = self._book.expires(resident)
        return LoadedModel(
            name=name,
            state=resident.state.value,
            progress=1.0 if resident.state is State.READY else seat.process.progress,
            info=seat.process.info,
            stats=seat.process.stats,
            pid=seat.process.pid,
            since=seat.since,
            expires_at=None if expires is None else time.time() + expires - time.monotonic(),
            in_flight=resident.leases,
            keep_alive=None if math.isinf(resident.keep_alive) else resident.keep_alive,
        )
