"""The daemon's front: what the HTTP dialects talk to.

In: a request with a model's name. Out: its events. Here names become models, defaults are laid
under what was asked, and every request is counted once. Knows no HTTP and no native code. All of it
belongs to one event loop; the store's blocking calls run in threads.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from llmrun.config import Settings
from llmrun.daemon.counters import OK, Counters
from llmrun.daemon.pool import LoadedModel, RunnerPool
from llmrun.daemon.prepare import R, content_version, prepare
from llmrun.daemon.process import Limits
from llmrun.daemon.pulls import Tell, progress_of
from llmrun.daemon.room import Room
from llmrun.daemon.spare import COMMAND, Spare
from llmrun.daemon.wanted import Wanted
from llmrun.daemon.weighing import Weigher
from llmrun.errors import CANCELLED, INTERNAL, SHUTTING_DOWN, LlmrunError, short_of_memory
from llmrun.log import fields
from llmrun.store import Blobs, Modelfile, PullProgress, Removed, StoredModel
from llmrun.types import AnyRequest, Event, Failed, Finished, GenerateRequest, Terminal, Usage

log = logging.getLogger(__name__)

Observer = Callable[[str, Finished], None]


class Models(Protocol):
    """What the daemon needs of the store. Calls may block; LlmrunError where a name is no model's."""

    def resolve(self, name: str) -> StoredModel: ...
    def list(self) -> list[StoredModel]: ...
    def copy(self, source: str, destination: str) -> StoredModel: ...
    def remove(self, name: str) -> Removed: ...
    def pull(self, reference: str, *, on_progress: Tell) -> StoredModel: ...
    def create(self, name: str, modelfile: Modelfile, *, on_progress: Tell) -> StoredModel: ...
    def create_quantized(
        self, name: str, modelfile: Modelfile, kind: str, *, on_progress: Tell
    ) -> StoredModel: ...

    @property
    def blobs(self) -> Blobs: ...


class Service:
    """See the module. `close` ends every runner. `spare`, the caller's to start and close, becomes the first
    of them."""

    def __init__(
        self,
        store: Models,
        settings: Settings,
        *,
        command: Sequence[str] = COMMAND,
        limits: Limits | None = None,
        room: Room | None = None,
        kv_folder: Path | None = None,
        spare: Spare | None = None,
    ) -> None:
        self.counters = Counters()
        self._store = store
        self._weigher = Weigher()
        self._settings = settings
        self._kv_folder = kv_folder
        self._observers: list[Observer] = []
        self._pool = RunnerPool(
            settings, self.counters, command=command, limits=limits, room=room, spare=spare
        )

    async def close(self) -> None:
        """End every request and every runner. Returns when no child process is left."""
        await self._pool.close()

    def observe(self, observer: Observer) -> None:
        """Call `observer(model, finished)` for every generation that ends well: usage and timings."""
        self._observers.append(observer)

    @property
    def waiting(self) -> int:
        """Requests that wait for a runner to load or to have room; those a runner holds are in its stats."""
        return self._pool.waiting

    async def models(self) -> list[StoredModel]:
        """All models on disk, by name."""
        return await asyncio.to_thread(self._store.list)

    async def model(self, name: str) -> StoredModel:
        """The model that `name` means. LlmrunError UNKNOWN_MODEL."""
        return await asyncio.to_thread(self._store.resolve, name)

    def loaded(self) -> list[LoadedModel]:
        """The runners there are, by name."""
        return self._pool.loaded()

    async def stop(self, name: str | None) -> list[str]:
        """Unload a model, or all: at once, their requests fail. Returns when the memory is free, with
        the names that were loaded. LlmrunError UNKNOWN_MODEL."""
        loaded = [model.name for model in self.loaded()]
        if name is not None and name not in loaded:
            name = (await self.model(name)).name
        names = loaded if name is None else [name]
        stopped = await asyncio.gather(*(self._pool.unload(each, _stopped(each)) for each in names))
        return [each for each, was_loaded in zip(names, stopped, strict=True) if was_loaded]

    async def load(self, request: AnyRequest) -> None:
        """Have the model of `request` in memory as the request wants it; nothing is generated. LlmrunError
        as for `ask`. Cancelling leaves a model that is loading to the others who want it."""
        _, wanted = await asyncio.to_thread(self._prepared, request)
        async with self._pool.lease(wanted):
            pass

    async def let_go(self, name: str) -> None:
        """Unload a model once its requests have ended; harmless where it is not loaded. LlmrunError
        UNKNOWN_MODEL."""
        await self._pool.let_go((await self.model(name)).name)

    def pull(self, reference: str) -> AsyncGenerator[PullProgress, None]:
        """Bring a model here: how far it is, until it is there. LlmrunError where it cannot be had. Closing
        the generator stops it; the next pull goes on from what was fetched."""
        return progress_of(lambda tell: self._store.pull(reference, on_progress=tell))

    def create(self, name: str, modelfile: Modelfile, kind: str | None) -> AsyncGenerator[PullProgress, None]:
        """Make a model of what is said of it, its weights in the number type `kind` where one is given; else
        as `pull`."""
        store = self._store
        if kind is None:
            return progress_of(lambda tell: store.create(name, modelfile, on_progress=tell))
        return progress_of(lambda tell: store.create_quantized(name, modelfile, kind, on_progress=tell))

    async def blob(self, digest: str) -> Path | None:
        """The file of these bytes, where there is one. LlmrunError INVALID_REQUEST where it is no digest."""
        return await asyncio.to_thread(self._store.blobs.find, digest)

    async def receive_blob(self, digest: str, size: int | None, pieces: AsyncIterator[bytes]) -> bool:
        """Keep a file that a client sends; False where it is here already. `size` in bytes, if known."""
        if await self.blob(digest):
            async for _ in pieces:  # a client that is not read to the end does not read the answer
                pass
            return False
        upload = await asyncio.to_thread(self._store.blobs.receive, digest, size)
        try:
            async for piece in pieces:
                await asyncio.to_thread(upload.write, piece)
        except BaseException:
            upload.discard()
            raise
        await asyncio.to_thread(upload.finish)
        return True

    async def copy(self, source: str, destination: str) -> StoredModel:
        """Give a model a further name. LlmrunError UNKNOWN_MODEL, CONFLICT."""
        return await asyncio.to_thread(self._store.copy, source, destination)

    async def remove(self, name: str) -> Removed:
        """Forget a model; what runs of it ends with its last request. LlmrunError UNKNOWN_MODEL."""
        removed = await asyncio.to_thread(self._store.remove, name)
        await self._pool.let_go(removed.name)
        return removed

    async def ask(self, request: AnyRequest) -> AsyncGenerator[Event, None]:
        """The events of one request. Ends in exactly one Finished or Failed, or raises LlmrunError before
        the first event.

        Closing the generator or cancelling the task that waits for it cancels the request at once: in the
        queue, while its model loads, in prefill and in decode. Times in Finished count from here.
        """
        arrived = time.monotonic()
        model, outcome, usage = "", CANCELLED.code, Usage(prompt=0, completion=0)
        try:
            request, wanted = await asyncio.to_thread(self._prepared, request)
            model = wanted.name
            async with self._pool.lease(wanted) as lease:
                waited_ms = (time.monotonic() - arrived) * 1000
                reply = lease.runner.submit(request)
                try:
                    async for event in reply:
                        if isinstance(event, Terminal):
                            last = event
                            break
                        yield event
                finally:
                    lease.runner.cancel(reply)
                lease.served = isinstance(last, Finished)
            # Yielded only now, so that a client that reads no further holds no lease.
            if isinstance(last, Finished):
                outcome, usage = OK, last.usage
                yield self._finished(model, request, last, waited_ms)
            else:
                outcome = last.error.code
                yield last
        except LlmrunError as error:
            outcome = error.kind.code
            raise
        except Exception as error:
            if (short := short_of_memory(error)) is None:
                log.exception("the request failed", extra={"request": request.id})
            failure = short or LlmrunError(INTERNAL, f"the request failed: {error!r}")
            outcome = failure.kind.code
            yield Failed(failure.info())
        finally:
            self.counters.requests[model, outcome] += 1
            self._tell(request.id, model, outcome, time.monotonic() - arrived, usage)

    @staticmethod
    def _tell(request_id: str, model: str, outcome: str, seconds: float, usage: Usage) -> None:
        """Log how a request ended."""
        told = fields(
            model=model,
            outcome=outcome,
            seconds=round(seconds, 3),
            prompt=usage.prompt,
            cached=usage.cached,
            completion=usage.completion,
        )
        about = model or "no model"
        log.info("%s: %s after %.2f s", about, outcome, seconds, extra={"request": request_id, **told})

    def _prepared(self, request: R) -> tuple[R, Wanted]:
        """The request with its model's defaults, and what it wants loaded; reads the disk."""
        model = self._store.resolve(request.model)
        version = content_version(model)
        prepared, load = prepare(request, model, version, self._settings, self._kv_folder)
        cost = self._weigher.weigh(model, load, version)
        cache = self._weigher.cache(model, load, version)
        return prepared, Wanted(load, version, cost, request.keep_alive, cache)

    def _finished(self, model: str, request: AnyRequest, event: Finished, waited_ms: float) -> Finished:
        """Count it; the wait for the runner, which the runner cannot know, goes into its times."""
        timings = msgspec.structs.replace(
            event.timings,
            load_ms=waited_ms,
            queue_ms=event.timings.queue_ms + waited_ms,
            ttft_ms=event.timings.ttft_ms + waited_ms,
        )
        event = msgspec.structs.replace(event, timings=timings)
        self.counters.add_usage(model, event.usage)
        if isinstance(request, GenerateRequest):
            for observer in self._observers:
                observer(model, event)
        return event


def _stopped(name: str) -> LlmrunError:
    return LlmrunError(SHUTTING_DOWN, f"{name} was stopped", hint="try again: it is then loaded anew")
