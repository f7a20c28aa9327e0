"""Which runner serves which request, and when runners start and stop: decisions only.

In: requests that want a model, leases given back, runners that became ready or are gone, time. Out:
start, stop, grant, refuse and wake, through `Effects`. Knows no processes, no event loop, and no clock
but the one it is given, so that every rule is tested with a recording fake and no sleep.

- A model has one runner. Requests that come while it loads share that one load.
- Requests are placed in order of arrival, over all models. Where an older request's model needs room,
  the least recently used runner leaves: at once if idle, else after the requests it has; newer requests
  for it wait. So a busy model cannot starve another one.
- A runner that no longer fits what is wanted (the file changed, a larger context) leaves the same way.
- An idle runner leaves after `keep_alive` seconds: those that the last request which named a time asked
  for, else the book's.
- A context that the machine could not hold with all models gone is refused: nobody leaves for it.
- At most `parallel + queue` requests a model, running and waiting together; more are refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from llmrun.daemon.guard import CrashGuard
from llmrun.daemon.room import Room, real_cost
from llmrun.daemon.states import State
from llmrun.daemon.wanted import Wanted
from llmrun.errors import CONTEXT_TOO_LARGE, OVERLOADED, SHUTTING_DOWN, LlmrunError
from llmrun.runner.frames import ModelInfo

Ticket = TypeVar("Ticket", bound=Hashable)
TicketIn = TypeVar("TicketIn", bound=Hashable, contravariant=True)

RETRY_AFTER = 1
"""Seconds after which a refused client may come again: places come free with every finished request."""


class Effects(Protocol[TicketIn]):
    """What the book has done for it. No call may call the book back before it returns."""

    def start(self, wanted: Wanted) -> None:
        """Start a runner; `ready` or `gone` follows."""

    def stop(self, name: str, error: LlmrunError) -> None:
        """End the runner, its requests with `error`; `gone` follows."""

    def grant(self, ticket: TicketIn, name: str) -> None:
        """The request may use the runner until `release`."""

    def refuse(self, ticket: TicketIn, error: LlmrunError) -> None:
        """The request is out; no `release` is needed."""

    def wake_at(self, when: float) -> None:
        """Call `tick` then, by the book's clock. Replaces the earlier wish."""


@dataclass(eq=False)
class Resident:
    """A runner from its start until it is gone, as the book sees it. `cost` in bytes; `keep_alive` in
    seconds, inf for ever."""

    wanted: Wanted
    cost: int
    last_used: float
    keep_alive: float
    state: State = State.LOADING
    info: ModelInfo | None = None
    leases: int = 0

    @property
    def name(self) -> str:
        return self.wanted.name


class _Pass:
    """What one walk over the waiting requests has settled so far; older requests came first.

    leaving   runners whose room an older request needs
    expected  loading runners that an older request waits for
    queued    cost by name of models that an older request wants and that have no room yet
    """

    def __init__(self) -> None:
        self.leaving: set[Resident] = set()
        self.expected: set[Resident] = set()
        self.queued: dict[str, int] = {}


class LeaseBook(Generic[Ticket]):
    """See the module. `parallel`: requests a model is taken to run together until it is loaded and says."""

    def __init__(
        self,
        effects: Effects[Ticket],
        *,
        room: Room,
        clock: Callable[[], float],
        keep_alive: float,
        parallel: int,
        queue: int,
    ) -> None:
        self._effects = effects
        self._room = room
        self._clock = clock
        self._keep_alive = keep_alive
        self._parallel = parallel
        self._queue = queue
        self._guard = CrashGuard()
        self._residents: dict[str, Resident] = {}
        self._waiting: dict[Ticket, Wanted] = {}
        self._leased: dict[Ticket, Resident] = {}
        self._closed: LlmrunError | None = None

    @property
    def residents(self) -> Mapping[str, Resident]:
        """Every runner there is, by name; to look at."""
        return self._residents

    @property
    def waiting(self) -> int:
        """Requests without a runner yet."""
        return len(self._waiting)

    def expires(self, resident: Resident) -> float | None:
        """When an idle runner will leave, by the book's clock; None while in use, or never."""
        if resident.state is not State.READY or resident.leases or math.isinf(resident.keep_alive):
            return None
        return resident.last_used + resident.keep_alive

    def want(self, ticket: Ticket, wanted: Wanted) -> None:
        """A request arrives: it is granted or refused now or later, unless `release` comes first."""
        if self._closed:
            self._effects.refuse(ticket, self._closed)
        elif self._asking(wanted.name) >= self._places(wanted.name):
            message = f"too many requests wait for {wanted.name} (at most {self._queue})"
            self._effects.refuse(ticket, LlmrunError(OVERLOADED, message, retry_after=RETRY_AFTER))
        elif wanted.cache and wanted.cache > (most := self._room.most(self._costs())):
            self._effects.refuse(ticket, _beyond_all_memory(wanted, most))
        else:
            self._waiting[ticket] = wanted
            self._settle()

    def release(self, ticket: Ticket, *, served: bool = False) -> None:
        """The request has ended (`served`: well) or its client left; harmless a second time."""
        self._waiting.pop(ticket, None)
        if resident := self._leased.pop(ticket, None):
            resident.leases -= 1
            resident.last_used = self._clock()
            if served:
                self._guard.served(resident.name)
        self._settle()

    def ready(self, name: str, info: ModelInfo) -> None:
        """The runner has loaded its model."""
        resident = self._residents[name]
        if resident.state is State.LOADING:
            resident.state = State.READY
            resident.info = info
            resident.cost = real_cost(info)
            resident.last_used = self._clock()
        self._settle()

    def gone(self, name: str, error: LlmrunError | None) -> None:
        """The runner has ended and freed its memory; `error` says why where nobody asked it to."""
        resident = self._residents.pop(name)
        if error:
            self._guard.failed(resident.wanted, error, self._clock())
            if resident.state is State.LOADING:
                # Not those that it would have served as well: a context too large for the memory is no
                # reason to refuse who asked for less.
                self._refuse((t for t, w in self._waiting.items() if w == resident.wanted), error)
        self._settle()

    def tick(self) -> None:
        """The time given to `wake_at` has come."""
        self._settle()

    def stop(self, name: str, error: LlmrunError) -> bool:
        """End the runner of `name` and the requests for it with `error`, now; False where none is."""
        resident = self._residents.get(name)
        if resident is None or resident.state is State.STOPPING:
            return False
        self._refuse((t for t, w in self._waiting.items() if w.name == name), error)
        self._stop(resident, error)
        self._settle()
        return True

    def let_go(self, name: str) -> None:
        """The runner of `name` leaves as soon as no request needs it; harmless where none is."""
        if resident := self._residents.get(name):
            resident.keep_alive = 0.0
            self._settle()

    def close(self, error: LlmrunError) -> None:
        """End everything with `error` and refuse all that comes later."""
        self._closed = error
        self._refuse(self._waiting, error)
        for resident in self._residents.values():
            if resident.state is not State.STOPPING:
                self._stop(resident, error)

    def _costs(self) -> list[int]:
        return [resident.cost for resident in self._residents.values()]

    def _asking(self, name: str) -> int:
        resident = self._residents.get(name)
        waiting = sum(wanted.name == name for wanted in self._waiting.values())
        return waiting + (resident.leases if resident else 0)

    def _places(self, name: str) -> int:
        resident = self._residents.get(name)
        return self._queue + (resident.info.parallel if resident and resident.info else self._parallel)

    def _settle(self) -> None:
        """Bring runners and requests to where the rules want them. Changes nothing when called again."""
        walk = _Pass()
        for ticket, wanted in list(self._waiting.items()):
            self._place(ticket, wanted, walk)
        for resident in walk.leaving:
            if not resident.leases and resident not in walk.expected:
                self._stop(resident, LlmrunError(SHUTTING_DOWN, f"{resident.name} made room"))
        self._expire()

    def _place(self, ticket: Ticket, wanted: Wanted, walk: _Pass) -> None:
        resident = self._residents.get(wanted.name)
        if resident is None:
            if refusal := self._guard.refusal(wanted, self._clock()):
                self._refuse([ticket], refusal)
            elif wanted.name not in walk.queued:
                self._start(wanted, walk)
        elif resident.state is State.STOPPING or resident in walk.leaving:
            return
        elif not wanted.served_by(resident.wanted, resident.info):
            walk.leaving.add(resident)
        elif resident.state is State.READY:
            self._grant(ticket, resident)
        else:
            walk.expected.add(resident)

    def _start(self, wanted: Wanted, walk: _Pass) -> None:
        """Start a runner where there is room; else let others leave and keep the place in the queue."""
        if not self._residents:
            self._room.measure()
        cost = wanted.cost
        queued = list(walk.queued.values())
        staying = [
            r for r in self._residents.values() if r.state is not State.STOPPING and r not in walk.leaving
        ]
        if self._room.fits(queued, cost):
            while staying and not self._room.fits([*queued, *(r.cost for r in staying)], cost):
                victim = min(staying, key=lambda r: (r.leases > 0 or r in walk.expected, r.last_used))
                staying.remove(victim)
                walk.leaving.add(victim)
        if self._room.fits([*queued, *self._costs()], cost):
            # Also where who asks has left before it is loaded.
            keep_alive = self._keep_alive if wanted.keep_alive is None else wanted.keep_alive
            resident = Resident(wanted, cost, self._clock(), keep_alive)
            self._residents[wanted.name] = resident
            walk.expected.add(resident)
            self._effects.start(wanted)
        else:
            walk.queued[wanted.name] = cost

    def _grant(self, ticket: Ticket, resident: Resident) -> None:
        wanted = self._waiting.pop(ticket)
        if wanted.keep_alive is not None:
            resident.keep_alive = wanted.keep_alive
        self._leased[ticket] = resident
        resident.leases += 1
        resident.last_used = self._clock()
        self._effects.grant(ticket, resident.name)

    def _refuse(self, tickets: Iterable[Ticket], error: LlmrunError) -> None:
        for ticket in list(tickets):
            del self._waiting[ticket]
            self._effects.refuse(ticket, error)

    def _stop(self, resident: Resident, error: LlmrunError) -> None:
        resident.state = State.STOPPING
        self._effects.stop(resident.name, error)

    def _expire(self) -> None:
        now = self._clock()
        expiries = []
        for resident in self._residents.values():
            if (expiry := self.expires(resident)) is None:
                continue
            if expiry <= now:
                self._stop(resident, LlmrunError(SHUTTING_DOWN, f"{resident.name} was idle"))
            else:
                expiries.append(expiry)
        if expiries:
            self._effects.wake_at(min(expiries))


def _beyond_all_memory(wanted: Wanted, most: int) -> LlmrunError:
    """Told before any model has left for one that cannot be loaded in its place."""
    return LlmrunError(
        CONTEXT_TOO_LARGE,
        f"a context of {wanted.load.ctx} tokens needs {wanted.cache / 1e9:.1f} GB for its KV cache, but this"
        f" machine can give {most / 1e9:.1f} GB at most",
    )
