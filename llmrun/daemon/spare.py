"""A runner process without a model, for the first load: what it imports, that load does not wait for.

In: the command of a runner. Out: its child process, once. Knows no frames and no models.

The daemon starts it before it imports what itself needs, so that two cores do both at once. `Spare` owns
the process until somebody takes it. One that nobody takes is ended, for it holds some 50 MB. It ends
with its daemon, like any runner.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import Callable, Sequence

from llmrun.daemon.child import Child, Patience

log = logging.getLogger(__name__)

COMMAND = (sys.executable, "-m", "llmrun.runner")
WAIT = 300.0
"""Seconds that it waits for a model: as long as a model that nobody uses stays loaded by default."""


class Spare:
    """To be started and closed, on one event loop; `take` may be called at any time, and again."""

    def __init__(
        self, command: Sequence[str] = COMMAND, *, wait: float = WAIT, patience: Patience | None = None
    ) -> None:
        self._command = command
        self._wait = wait
        self._patience = patience or Patience()
        self._said: list[tuple[int, bytes]] = []
        self._child: Child | None = None
        self._over = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Where it cannot be started there is none, and the first load will say why."""
        try:
            self._child = await Child.spawn(self._command, self._hear, self._over.set)
        except OSError as error:
            log.warning("no spare runner can be started: %s", error)
        else:
            self._owner = asyncio.create_task(self._own(self._child), name="spare runner")

    def take(self, on_output: Callable[[int, bytes], None], on_over: Callable[[], None]) -> Child | None:
        """The process, now the caller's to end; None where there is none, or no more. `on_output` gets all
        that it has said and will say; see `Child.spawn`."""
        if self._child is None or self._over.is_set():
            return None
        child, self._child = self._child, None
        child.hand_over(on_output, on_over)
        for fd, data in self._said:
            on_output(fd, data)
        self._over.set()
        return child

    async def close(self) -> None:
        """End it, where nobody took it. Returns when it is gone."""
        self._over.set()
        if self._owner:
            await asyncio.wait([self._owner])

    def _hear(self, fd: int, data: bytes) -> None:
        self._said.append((fd, data))

    async def _own(self, child: Child) -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._over.wait(), self._wait)
        if self._child is None:
            return
        self._child = None
        try:
            await child.end(self._patience)
        except BaseException:
            child.kill()
            await child.end(self._patience)
            raise
        finally:
            child.close()
