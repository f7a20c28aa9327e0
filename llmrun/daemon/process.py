"""One runner process: a model loaded in a child, requests down, events up, one report when it ends.

In: a `Load`, requests and cancels. Out: per request a `Reply` that ends in exactly one Finished or Failed.
Knows frames and states; not which runner serves whom, nor why one is stopped.

    loading ──Ready──▶ ready ──stop(), no frame──▶ stopping ──▶ dead
       └── stop(), LoadFailed, no progress; stuck ────┘          ▲
          └────────────── it dies by itself ─────────────────────┘

`run` is the owner: it spawns, waits, ends and reaps the child, and nothing else does. All methods belong
to the one event loop.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from llmrun.daemon.child import STDOUT, Child, Patience
from llmrun.daemon.replies import Replies, Reply
from llmrun.daemon.runner_log import RunnerLog
from llmrun.daemon.spare import COMMAND, Spare
from llmrun.daemon.states import State
from llmrun.daemon.vitals import Bounds, Vitals
from llmrun.errors import INTERNAL, MODEL_LOAD, NO_MEMORY, RUNNER_DIED, LlmrunError
from llmrun.runner import frames
from llmrun.types import AnyRequest, Stats

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Limits:
    """`load_stall`: seconds of loading without progress before a runner is given up. A slow disk may
    take as long as it needs while the fraction loaded still grows. `bounds`: when a loaded one is stuck."""

    load_stall: float = 300.0
    bounds: Bounds = field(default_factory=Bounds)
    patience: Patience = field(default_factory=Patience)


class RunnerProcess:
    """See the module. Frames are written without waiting for the runner to read them: what it has not
    read is held here, and the pool bounds how many requests that can be."""

    def __init__(
        self,
        load: frames.Load,
        *,
        command: Sequence[str] = COMMAND,
        limits: Limits | None = None,
        spare: Spare | None = None,
    ) -> None:
        self.state = State.LOADING
        self.info: frames.ModelInfo | None = None
        self.stats: Stats | None = None
        self.progress = 0.0
        self.pid: int | None = None
        self._load = load
        self._command = command
        self._limits = limits or Limits()
        self._spare = spare
        self._replies = Replies()
        self._splitter = frames.FrameSplitter()
        self._log = RunnerLog(load.name)
        self._child: Child | None = None
        self._on_ready: Callable[[frames.ModelInfo], None]
        self._over = asyncio.Event()
        self._sign_of_life = 0.0
        self._vitals = Vitals(self._limits.bounds)
        self._next_look: asyncio.TimerHandle | None = None
        self._asked = False
        self._end: LlmrunError | None = None

    @property
    def name(self) -> str:
        return self._load.name

    async def run(self, on_ready: Callable[[frames.ModelInfo], None]) -> LlmrunError | None:
        """The runner's whole life. None where `stop` ended it, else why it ended.

        Cancelling it kills the child at once, and still reaps it.
        """
        self._on_ready = on_ready
        if self._over.is_set():
            return self._bury(None)
        try:
            self._child = child = await self._start()
        except OSError as error:
            message = f"the engine of {self.name} cannot be started: {error}"
            self._give_up(LlmrunError(MODEL_LOAD, message, hint="llmrun doctor"))
            return self._bury(None)
        self.pid = child.pid
        try:
            child.send(frames.encode(self._load))
            await self._watch()
            code = await child.end(self._limits.patience)
        except BaseException:
            child.kill()
            self._bury(await child.end(self._limits.patience))
            raise
        finally:
            if self._next_look:
                self._next_look.cancel()
            child.close()
            self._log.close()
        return self._bury(code)

    async def _start(self) -> Child:
        """The spare process, if there still is one, else a new one."""
        spare = self._spare.take(self._output, self._over.set) if self._spare else None
        return spare or await Child.spawn(self._command, self._output, self._over.set)

    def submit(self, request: AnyRequest) -> Reply:
        """Send a request down. On a runner that is ending or dead the reply holds its one Failed."""
        reply = self._replies.open(request.id)
        if self.state is State.READY and self._child:
            self._child.send(frames.encode(frames.Submit(request)))
            if self._next_look is None:
                self._vitals.begin(time.monotonic())
                self._look()
        else:
            self._replies.fail_all(self._end or self._died("it is not ready"))
        return reply

    def cancel(self, reply: Reply) -> None:
        """The reply is wanted no more; harmless where it has ended."""
        if self._replies.drop(reply) and self._child:
            self._child.send(frames.encode(frames.Cancel(reply.id)))

    def stop(self, error: LlmrunError) -> None:
        """Begin to end it: requests in flight end with `error` now, `run` returns soon."""
        if self.state in (State.LOADING, State.READY):
            self._asked = True
            self._give_up(error)
            self._replies.fail_all(error)
            if self._child:
                self._child.send(frames.encode(frames.Shutdown()))

    def _break(self, error: LlmrunError) -> None:
        """It is at fault. Killed rather than asked: the sooner it is gone, the sooner a new one serves,
        and until then requests go on to arrive."""
        self._give_up(error)
        if self._child:
            self._child.kill()

    def _give_up(self, error: LlmrunError) -> None:
        self.state = State.STOPPING
        self._end = error
        self._over.set()

    async def _watch(self) -> None:
        """Until there is a reason to end the child: it closed its output, broke the protocol, could not
        load, loads without progress, or was told to stop."""
        self._sign_of_life = time.monotonic()
        while not self._over.is_set():
            wait = None
            if self.state is State.LOADING:
                wait = self._sign_of_life + self._limits.load_stall - time.monotonic()
            if wait is not None and wait <= 0:
                self._break(self._stalled())
                return
            try:
                await asyncio.wait_for(self._over.wait(), wait)
            except asyncio.TimeoutError:
                continue

    def _look(self) -> None:
        """See that it is alive, again and again for as long as it has work."""
        self._next_look = None
        if self.state is not State.READY or self._child is None or self._replies.empty:
            return
        look = self._vitals.look(time.monotonic())
        if look.stuck:
            message = f"the engine of {self.name} was ended, as {look.stuck}"
            self._break(LlmrunError(RUNNER_DIED, message, cause=look.stuck, log=self._log.tail))
            return
        if look.ask:
            self._child.send(frames.encode(frames.Ping()))
        self._next_look = asyncio.get_running_loop().call_later(look.wait, self._look)

    def _output(self, fd: int, data: bytes) -> None:
        if fd != STDOUT:
            self._log.feed(data)
        elif self.state in (State.LOADING, State.READY):
            try:
                for body in self._splitter.feed(data):
                    self._take(frames.decode_up(body))
            except (ValueError, msgspec.MsgspecError) as error:
                self._break(self._died(f"it wrote what is no frame: {error}"))
            except Exception as error:
                log.exception("a frame of %s cannot be taken", self.name)
                self._break(LlmrunError(INTERNAL, f"a frame of {self.name} cannot be taken: {error}"))

    def _take(self, frame: frames.Up) -> None:
        if isinstance(frame, frames.Events):
            self._vitals.heard(time.monotonic(), moved=True)
            self._replies.deliver(frame.items)
        elif isinstance(frame, Stats):
            stepped = self.stats is None or frame.steps != self.stats.steps
            self._vitals.heard(time.monotonic(), moved=stepped)
            self.stats = frame
        elif isinstance(frame, frames.Pong):
            self._vitals.heard(time.monotonic(), moved=False)
        elif isinstance(frame, frames.LoadProgress):
            if frame.fraction > self.progress:
                self.progress = frame.fraction
                self._sign_of_life = time.monotonic()
        elif isinstance(frame, frames.Ready):
            if self.state is State.LOADING:
                self.state = State.READY
                self.info = frame.info
                self._on_ready(frame.info)
        else:
            self._give_up(LlmrunError.from_info(frame.error))

    def _bury(self, code: int | None) -> LlmrunError | None:
        if self._end is None:
            when = " while loading" if self.state is State.LOADING else ""
            self._end = self._died(_cause(code, self._splitter.pending), when, code)
        self._replies.fail_all(self._end)
        self.state = State.DEAD
        return None if self._asked else self._end

    def _died(self, cause: str, when: str = "", code: int | None = None) -> LlmrunError:
        message = f"the engine of {self.name} died{when} ({cause})"
        if self._log.tells_of_memory:
            message = f"memory ran out: {message}"
            return LlmrunError(NO_MEMORY, message, cause=cause, log=self._log.tail)
        hint = RUNNER_DIED.hint
        if code == -signal.SIGKILL:
            hint = "if nobody killed it, memory ran out: try again, a smaller quant or a smaller --ctx"
        return LlmrunError(RUNNER_DIED, message, hint=hint, cause=cause, log=self._log.tail)

    def _stalled(self) -> LlmrunError:
        return LlmrunError(
            MODEL_LOAD,
            f"the engine of {self.name} made no progress in loading for {self._limits.load_stall:g} s",
            hint="try again; llmrun logs may tell more",
            log=self._log.tail,
        )


def _cause(code: int | None, unfinished: int) -> str:
    """How a process ended, in a few words: `SIGKILL`, `exit code 3`."""
    if code is None:
        return "it hangs and cannot be ended"
    if code < 0:
        known = {number.value: number.name for number in signal.Signals}
        return known.get(-code, f"signal {-code}")
    return f"exit code {code}, inside a frame" if unfinished else f"exit code {code}"
