"""A service that plays a script in place of the daemon: real events, no processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path

from llmrun.daemon.counters import Counters
from llmrun.daemon.pool import LoadedModel
from llmrun.errors import UNKNOWN_MODEL, LlmrunError
from llmrun.store import Modelfile, PullProgress, Removed, StoredModel
from llmrun.store.blobs import hex_of
from llmrun.types import (
    AnyRequest,
    CallArguments,
    CallStarted,
    Event,
    Finished,
    GenerateRequest,
    Limit,
    Progress,
    Reasoning,
    Started,
    Stopped,
    Text,
    Timings,
    TokenLogprob,
    TopLogprob,
    Usage,
)

TIMINGS = Timings(queue_ms=1.0, prefill_ms=20.0, decode_ms=30.0, ttft_ms=21.0, itl_ms=15.0)
MODEL = "tiny:1m"

AGENT: list[Event] = [
    Started(5, 42),
    Reasoning(0, "Look "),
    Reasoning(0, "twice."),
    Text(0, ""),
    Text(0, "I "),
    Text(0, "look."),
    CallStarted(0, 0, "call_a", "look"),
    CallArguments(0, 0, '{"at": '),
    CallArguments(0, 0, '"sea", "n": 12345678901234567890123}'),
    CallStarted(0, 1, "call_b", "wait"),
    CallArguments(0, 1, "{}"),
    Stopped(0, "tool_calls"),
    Finished(Usage(prompt=5, completion=30, reasoning=9), TIMINGS),
]
"""An answer that thinks, speaks and calls two tools."""

Script = Callable[[GenerateRequest], AsyncGenerator[Event, None]]


def token(text: str | bytes, logprob: float = -0.5, *top: tuple[str, float]) -> TokenLogprob:
    raw = text.encode() if isinstance(text, str) else text
    others = tuple(TopLogprob(number, other.encode(), p) for number, (other, p) in enumerate(top))
    return TokenLogprob(7, raw, logprob, others)


def answer(
    *pieces: str, n: int = 1, reason: str = "stop", prompt: int = 5, limit: Limit | None = None
) -> list[Event]:
    """The events of a request whose answers all say `pieces`."""
    events: list[Event] = [Started(prompt, 42), Progress(prompt, prompt, 2)]
    events += [Text(index, piece) for piece in pieces for index in range(n)]
    events += [Stopped(index, reason, limit=limit) for index in range(n)]
    usage = Usage(prompt=prompt, completion=len(pieces) * n, cached=2)
    return [*events, Finished(usage, TIMINGS)]


async def hello(request: GenerateRequest) -> AsyncGenerator[Event, None]:
    """Every answer is `Hello wörld`."""
    for event in answer("Hello", " wörld", n=request.n):
        yield event


async def nothing(_: AnyRequest) -> AsyncGenerator[Event, None]:
    """A request of another kind ends without a word."""
    yield Finished(Usage(prompt=0, completion=0), TIMINGS)


async def fetched(reference: str) -> AsyncGenerator[PullProgress, None]:
    """A pull of one file, in two pieces."""
    if "nobody" in reference:
        raise LlmrunError(UNKNOWN_MODEL, f"there is no model {reference!r} on this machine")
    yield PullProgress("note", "Q4_0 fits this machine", 0, None)
    for done in (50, 100):
        yield PullProgress("download", "x.gguf", done, 100)
    yield PullProgress("verify", "x.gguf", 100, 100)


@dataclass
class ScriptedService:
    """Plays `script` for every generation of a model it has, `lookup` for what else is asked; remembers
    what was asked and what was closed.

    ended  becomes set when a request's generator is closed, however
    """

    script: Script = hello
    lookup: Callable[[AnyRequest], AsyncGenerator[Event, None]] = nothing
    stored: list[StoredModel] = field(default_factory=list)
    running: list[LoadedModel] = field(default_factory=list)
    counters: Counters = field(default_factory=Counters)
    waiting: int = 0
    asked: list[GenerateRequest] = field(default_factory=list)
    looked_up: list[AnyRequest] = field(default_factory=list)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    observers: list[Callable[[str, Finished], None]] = field(default_factory=list)
    stopped: list[str | None] = field(default_factory=list)
    loads: list[AnyRequest] = field(default_factory=list)
    let_gone: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    copied: list[tuple[str, str]] = field(default_factory=list)
    created: list[tuple[str, Modelfile]] = field(default_factory=list)
    kinds: list[str | None] = field(default_factory=list)
    blobs: dict[str, Path] = field(default_factory=dict)
    pull_script: Callable[[str], AsyncGenerator[PullProgress, None]] = fetched

    def observe(self, observer: Callable[[str, Finished], None]) -> None:
        self.observers.append(observer)

    async def ask(self, request: AnyRequest) -> AsyncGenerator[Event, None]:
        self.begun.set()
        try:
            if request.model not in (MODEL, *(stored.name for stored in self.stored)):
                raise LlmrunError(
                    UNKNOWN_MODEL, f"there is no model {request.model!r}", hint=f"llmrun pull {request.model}"
                )
            if isinstance(request, GenerateRequest):
                self.asked.append(request)
                script = self.script(request)
            else:
                self.looked_up.append(request)
                script = self.lookup(request)
            async with aclosing(script) as events:
                async for event in events:
                    if isinstance(event, Finished) and isinstance(request, GenerateRequest):
                        for observer in self.observers:
                            observer(request.model, event)
                    yield event
        finally:
            self.ended.set()

    async def models(self) -> list[StoredModel]:
        return self.stored

    async def model(self, name: str) -> StoredModel:
        for stored in self.stored:
            if stored.name == name:
                return stored
        raise LlmrunError(UNKNOWN_MODEL, f"there is no model {name!r}", hint=f"llmrun pull {name}")

    def loaded(self) -> list[LoadedModel]:
        return self.running

    async def load(self, request: AnyRequest) -> None:
        self.loads.append(request)

    async def let_go(self, name: str) -> None:
        self.let_gone.append((await self.model(name)).name)

    def pull(self, reference: str) -> AsyncGenerator[PullProgress, None]:
        return self.pull_script(reference)

    def create(self, name: str, modelfile: Modelfile, kind: str | None) -> AsyncGenerator[PullProgress, None]:
        self.created.append((name, modelfile))
        self.kinds.append(kind)
        return fetched(name)

    async def blob(self, digest: str) -> Path | None:
        return self.blobs.get(f"sha256:{hex_of(digest)}")

    async def receive_blob(self, digest: str, size: int | None, pieces: AsyncIterator[bytes]) -> bool:
        received = b"".join([piece async for piece in pieces])
        assert size in (None, len(received))
        new = await self.blob(digest) is None
        self.blobs[digest] = Path(f"/models/blobs/{len(received)}.gguf")
        return new

    async def copy(self, source: str, destination: str) -> StoredModel:
        model = await self.model(source)
        self.copied.append((source, destination))
        return replace(model, name=destination)

    async def remove(self, name: str) -> Removed:
        model = await self.model(name)
        self.stored.remove(model)
        self.removed.append(model.name)
        return Removed(model.name, model.size, in_place=False)

    async def stop(self, name: str | None) -> list[str]:
        self.stopped.append(name)
        return [model.name for model in self.running if name in (None, model.name)]
