"""One child process: bytes in, bytes out, an end that always comes.

In: a command, bytes for its stdin. Out: what it writes, as it comes; its exit code. Knows no frames and
no models. Belongs to one event loop; no method may be called from another thread.

Built on asyncio's transports and not on its streams: those pause a child that writes faster than is
read and then never see it end, and their `wait` means different things in different versions of Python.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from llmrun import huge_pages

log = logging.getLogger(__name__)

STDIN, STDOUT, STDERR = 0, 1, 2


@dataclass(frozen=True)
class Patience:
    """Seconds to wait for the exit after each push, and for the rest of the output after the exit."""

    end_of_file: float = 5.0
    terminate: float = 2.0
    kill: float = 10.0
    output: float = 2.0


class Child(asyncio.SubprocessProtocol):
    """The owner of one process. `end` must be called, and reaps it; `close` frees the pipes.

    The process leads a session of its own: a Ctrl-C typed in the daemon's terminal does not reach it, so
    the daemon decides. Its stdin ends when the daemon dies, whichever way, and it must take that as
    its own end.
    """

    def __init__(self, on_output: Callable[[int, bytes], None], on_over: Callable[[], None]) -> None:
        self._on_output = on_output
        self._on_over = on_over
        self._exited = asyncio.Event()
        self._open = {STDOUT, STDERR}
        self._drained = asyncio.Event()

    @classmethod
    async def spawn(
        cls,
        command: Sequence[str],
        on_output: Callable[[int, bytes], None],
        on_over: Callable[[], None],
    ) -> Child:
        """Start `command`. `on_output(STDOUT or STDERR, bytes)` is called as it writes, and `on_over()`
        when it exits or closes its stdout. OSError where it cannot be started."""
        # Without this, Python's -m looks for modules in the folder the daemon was started in first.
        env = {**os.environ, **huge_pages.asking(os.environ), "PYTHONSAFEPATH": "1"}
        _, child = await asyncio.get_running_loop().subprocess_exec(
            lambda: cls(on_output, on_over),
            *command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env=env,
        )
        return child

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Casts here and below, as uvloop's transports have asyncio's methods but are not its classes.
        self._transport = cast(asyncio.SubprocessTransport, transport)

    @property
    def pid(self) -> int:
        return self._transport.get_pid()

    def hand_over(self, on_output: Callable[[int, bytes], None], on_over: Callable[[], None]) -> None:
        """From now on these are called, in place of those that it was started with."""
        self._on_output, self._on_over = on_output, on_over

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._on_output(fd, data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 (asyncio names it)
        self._open.discard(fd)
        if not self._open:
            self._drained.set()
        if fd == STDOUT:
            self._on_over()

    def process_exited(self) -> None:
        self._exited.set()
        self._on_over()

    def send(self, data: bytes) -> None:
        """Write to the child's stdin, without waiting: what it does not read yet is kept here."""
        stdin = cast("asyncio.WriteTransport | None", self._transport.get_pipe_transport(STDIN))
        if stdin and not stdin.is_closing():
            stdin.write(data)

    async def end(self, patience: Patience) -> int | None:
        """Wait for the exit, pushing harder each time: end of file, SIGTERM, SIGKILL.

        The exit code, negative for a signal; None for a process that even SIGKILL did not end (it hangs
        in the kernel; the event loop reaps it should it ever come back).
        """
        if stdin := self._transport.get_pipe_transport(STDIN):
            stdin.close()
        for push, seconds in (
            (None, patience.end_of_file),
            (signal.SIGTERM, patience.terminate),
            (signal.SIGKILL, patience.kill),
        ):
            if push:
                log.warning("process %d does not end; sending %s", self.pid, push.name)
                self._signal(push)
            if await _within(self._exited, seconds):
                await _within(self._drained, patience.output)
                return self._transport.get_returncode()
        log.error("process %d did not end %g s after SIGKILL", self.pid, patience.kill)
        return None

    def kill(self) -> None:
        """End it this instant."""
        self._signal(signal.SIGKILL)

    def close(self) -> None:
        """Close the pipes. To be called after `end`."""
        self._transport.close()

    def _signal(self, number: signal.Signals) -> None:
        # Not the transport's send_signal: that may reap the process behind its watcher's back, and then
        # the exit code is lost.
        if not self._exited.is_set():
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                log.debug("process %d ended before %s reached it", self.pid, number.name)


async def _within(event: asyncio.Event, seconds: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except asyncio.TimeoutError:
        return False
    return True
