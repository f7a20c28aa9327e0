"""The progress of a pull, or of making a model, as Ollama's status objects.

Clients draw one bar for each `digest`. The digest of the bytes is not known while they arrive, so what
stands there is the file's name, with `file:` in front.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from llmrun.api.ollama.lines import Json, line
from llmrun.api.ports import Service
from llmrun.errors import UNKNOWN_MODEL, LlmrunError
from llmrun.store import PullProgress

MANIFEST: Json = {"status": "pulling manifest"}
SUCCESS: Json = {"status": "success"}


def status(progress: PullProgress) -> Json:
    """One object of the stream. `total` is missing where no source says it."""
    if progress.step == "note":
        return {"status": progress.text}
    if progress.step == "verify":
        return {"status": "verifying sha256 digest"}
    does = "quantizing" if progress.step == "quantize" else "pulling"
    moving: Json = {"status": f"{does} {progress.text}", "digest": f"file:{progress.text}"}
    if progress.total is not None:
        moving["total"] = progress.total
    return {**moving, "completed": progress.completed}


async def pulled(service: Service, name: str) -> AsyncGenerator[PullProgress, None]:
    """A pull of a name or reference of ours, else of that name in Ollama's registry, where its clients
    expect it. The first error where neither has it."""
    try:
        async with aclosing(service.pull(name)) as progress:
            async for step in progress:
                yield step
        return
    except LlmrunError as error:
        if error.kind is not UNKNOWN_MODEL or "://" in name:
            raise
        unknown = error
    began = False
    try:
        async with aclosing(service.pull(f"ollama://{name}")) as progress:
            async for step in progress:
                began = began or step.step == "download"
                yield step
    except LlmrunError as error:
        raise (error if began else unknown) from None


async def drained(progress: AsyncGenerator[PullProgress, None]) -> Json:
    """The one object that a client which wants no progress gets at the end."""
    async with aclosing(progress):
        async for _ in progress:
            pass
    return SUCCESS


class ProgressLines:
    """Progress as lines, `first` before all others."""

    def __init__(self, progress: AsyncGenerator[PullProgress, None], first: Json) -> None:
        self._progress = progress
        self._first = self._last = first

    async def lines(self) -> AsyncGenerator[bytes, None]:
        """To be iterated once. The first line comes with the first progress, so that what fails at once has
        its own HTTP status."""
        async with aclosing(self._progress):
            async for step in self._progress:
                if self._last is self._first:
                    yield line(self._first)
                self._last = status(step)
                yield line(self._last)
        if self._last is self._first:
            yield line(self._first)
        yield line(SUCCESS)

    def ping(self) -> bytes:
        """The last line again: keeps a connection alive while nothing arrives."""
        return line(self._last)
