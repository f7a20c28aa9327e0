"""The runner process: `python -m llmrun.runner`, frames on stdin and stdout, log on stderr.

What any model needs is imported before there is one: a daemon starts its first runner ahead of its first
request.

Threads: this one reads frames; one prepares (loads the model, then tokenises prompts), and one does so
for what may take long; one is the engine, one the embedder; one writes frames; others pass
(`passing_thread`). A death of either of these ends the process, so that the daemon sees it.
"""

from __future__ import annotations

import gc
import importlib
import os
import queue
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from llmrun import huge_pages, log
from llmrun.errors import INTERNAL, MODEL_LOAD, LlmrunError
from llmrun.runner.exhaustion import SPARE, exhausted
from llmrun.runner.frames import (
    Cancel,
    Events,
    Load,
    LoadFailed,
    LoadProgress,
    Ping,
    Pong,
    Ready,
    Shutdown,
    Submit,
)
from llmrun.runner.pipes import FrameWriter, read_frames
from llmrun.runner.priority import prefer_this_thread
from llmrun.types import (
    AnyRequest,
    DetokenizeRequest,
    Event,
    GenerateRequest,
    RenderRequest,
    TokenizeRequest,
)

if TYPE_CHECKING:
    from llmrun.engine import Embedder, Engine


def _own_stdout() -> int:
    """The pipe to the daemon, taken away from native code, whose prints go to the log instead."""
    pipe = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return pipe


LONG_TEXT = 65_536
"""Characters; tokenising them takes a few hundredths of a second."""
STACK = 16 * 1024 * 1024
"""Bytes for each thread: llama.cpp recurses where it splits text into words (`llmrun.llama.windows`), and
macOS gives threads half a megabyte."""

_Requests = queue.SimpleQueue[AnyRequest | None]


def _may_take_long(request: AnyRequest) -> bool:
    """Whether a grammar must be compiled, or text tokenised whose length no context bounds."""
    if isinstance(request, GenerateRequest):
        return request.output_format is not None or bool(request.tools)
    if isinstance(request, TokenizeRequest):
        return len(request.text) > LONG_TEXT
    return not isinstance(request, DetokenizeRequest | RenderRequest)


class Runner:
    """One model from Load to Shutdown."""

    def __init__(self, spec: Load, writer: FrameWriter) -> None:
        self._spec = spec
        self._writer = writer
        self._requests: _Requests = queue.SimpleQueue()
        self._slow: _Requests = queue.SimpleQueue()
        self._preparer = threading.Thread(target=self._load_and_prepare, name="prepare", daemon=True)
        self._slow_preparer = threading.Thread(
            target=self._prepare, args=(self._slow,), name="prepare slowly", daemon=True
        )
        self._workers: list[tuple[Engine | Embedder, threading.Thread]] = []
        self._ready = threading.Event()

    def start(self) -> None:
        try:
            self._preparer.start()
        except RuntimeError as error:  # there is no memory for its stack
            self._give_up(error)

    def submit(self, request: AnyRequest) -> None:
        self._ready.wait()
        self._desk.expect(request.id)
        (self._slow if _may_take_long(request) else self._requests).put(request)

    def cancel(self, request_id: str) -> None:
        self._ready.wait()
        self._desk.cancel(request_id)

    def close(self) -> None:
        """End the engine, free the model, write what is left to say."""
        self._ready.wait()
        for requests, thread in ((self._requests, self._preparer), (self._slow, self._slow_preparer)):
            requests.put(None)
            thread.join()
        for worker, thread in self._workers:
            worker.stop()
            thread.join()
        self._loaded.close()
        self._writer.close()

    def _load_and_prepare(self) -> None:
        try:
            self._load()
        except Exception as error:
            self._give_up(error)
        self._desk.learn()
        self._prepare(self._requests)

    def _give_up(self, error: Exception) -> NoReturn:
        """End the process, and say why the model cannot be loaded."""
        self._writer.put(LoadFailed(_why(error, self._spec).info()))
        self._writer.close()
        os._exit(1)

    def _prepare(self, requests: _Requests) -> None:
        while (request := requests.get()) is not None:
            self._desk.prepare(request)

    def _load(self) -> None:
        from llmrun.runner.answers import Answers
        from llmrun.runner.desk import Desk
        from llmrun.runner.loading import load
        from llmrun.runner.statistics import Statistics

        self._loaded = load(
            self._spec,
            self._emit,
            lambda fraction: self._writer.put(LoadProgress(fraction)),
            lambda: huge_pages.no_more(os.environ),
        )
        answers = Answers()
        self._writer.read = answers.read
        self._desk = Desk(self._loaded, answers, self._say, time.monotonic)
        self._slow_preparer.start()
        for worker in self._loaded.workers:
            name = type(worker).__name__.lower()
            thread = threading.Thread(target=self._work, args=(worker,), name=name, daemon=True)
            thread.start()
            self._workers.append((worker, thread))
        engine, embedder = self._loaded.engine, self._loaded.embedder
        self._writer.stats = Statistics(engine, embedder).read
        self._writer.put(Ready(self._loaded.info))
        self._ready.set()

    def _work(self, worker: Engine | Embedder) -> None:
        prefer_this_thread()
        try:
            worker.run()
        except BaseException:
            log.ROOT.exception("the engine of %s failed", self._spec.name)
            self._writer.close()
            os._exit(1)

    def _emit(self, events: list[tuple[str, Event]]) -> None:
        self._writer.put(Events(events))

    def _say(self, request_id: str, event: Event) -> None:
        self._writer.put(Events([(request_id, event)]))


def _why(error: Exception, spec: Load) -> LlmrunError:
    """Why the model cannot be loaded. llmrun's own words, but for llama.cpp's of a file that it could not
    take in: those do not say that memory was short."""
    size = 0
    if isinstance(error, LlmrunError):
        if error.kind is not MODEL_LOAD:
            return error
        with suppress(OSError):  # it may be gone
            size = Path(spec.path).stat().st_size
    else:
        log.ROOT.error("loading %s failed", spec.name, exc_info=error)
    if exhaustion := exhausted(error, f"while {spec.name} was loaded", spare=max(size, SPARE)):
        return exhaustion
    return error if isinstance(error, LlmrunError) else LlmrunError(INTERNAL, f"loading failed: {error!r}")


_AHEAD = (
    "llmrun.chat.sandbox",
    "llmrun.runner.answers",
    "llmrun.runner.desk",
    "llmrun.runner.loading",
    "llmrun.runner.statistics",
)


def _import_ahead() -> None:
    """Import what loading will need. What fails fails there again, and is told there."""
    gc.disable()  # what is imported stays: it need not be looked through, now or later
    with suppress(Exception):
        for module in _AHEAD:
            importlib.import_module(module)
    gc.freeze()
    gc.enable()


def main() -> None:
    """Serve frames until Shutdown (exit 0) or until the daemon is gone."""
    threading.stack_size(STACK)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is the daemon's to handle
    pipe = _own_stdout()
    log.setup(fmt="json")  # the daemon gives it the form that it was told
    writer = FrameWriter(pipe, time.monotonic)
    writer.start()
    _import_ahead()
    frames = read_frames(os.dup(sys.stdin.fileno()))
    first = next(frames, None)
    if first is None:
        os._exit(0)  # the daemon has no model for it, or is gone
    if not isinstance(first, Load):
        sys.exit("the runner is started by llmrun's daemon, not by hand")
    runner = Runner(first, writer)
    runner.start()
    for frame in frames:
        match frame:
            case Submit(request):
                runner.submit(request)
            case Cancel(request_id):
                runner.cancel(request_id)
            case Ping():
                writer.put(Pong())
            case Shutdown():
                runner.close()
                os._exit(0)
    os._exit(1)  # end of file: the daemon died; whatever is being computed, nobody wants it


if __name__ == "__main__":
    main()
