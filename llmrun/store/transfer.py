"""One file's requests: what is asked, whether the answer fits, and where its bytes go.

In: runs of the file to fetch, from `fetching`. Out: bytes in the part. An answer that does not fit what is
known of the file is not taken: it raises `Again` (tried again) or LlmrunError.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from llmrun.errors import BAD_FILE, DOWNLOAD, LlmrunError
from llmrun.store import web
from llmrun.store.disk import BLOCK, require_space
from llmrun.store.part import Part, Version
from llmrun.store.progress import Meter
from llmrun.store.wanted import Wanted
from llmrun.store.web import Again

if TYPE_CHECKING:
    import httpx

_MAGIC = b"GGUF"
_LARGE = 1 << 30  # bytes


def block_size(total: int | None) -> int:
    """Bytes recorded at once: what a kill may cost on each connection. Large files have larger blocks, so
    that their journals stay short."""
    return BLOCK if total is None or total > _LARGE else BLOCK // 4


@dataclass(eq=False)
class Run:
    """What one connection fetches now; `start` moves on as bytes are recorded. `end` None: to the end."""

    start: int
    end: int | None


class Transfer:
    """What the connections of one download share. `on_arrival` is called as bytes come."""

    def __init__(self, wanted: Wanted, part: Part, meter: Meter) -> None:
        self.wanted, self.part, self.meter = wanted, part, meter
        self.address = wanted.url
        self.plain = False  # without ranges, in one go
        self.flying = 0  # bytes that arrived and are not recorded yet
        self.begin(lambda: None)

    def begin(self, on_arrival: Callable[[], None]) -> None:
        """Start over with what is known: no answer has come yet."""
        self.on_arrival = on_arrival
        self.ranged = asyncio.Event()  # an answer was taken, and so are ranges
        self.changed = False  # while the part compares: a difference was found

    @property
    def total(self) -> int | None:
        return self.part.version.total if self.wanted.size is None else self.wanted.size

    @property
    def known(self) -> bool:
        """Whether the part's version is that of an answer, so that others must be of the same."""
        return bool(self.part.size) or self.ranged.is_set()

    @property
    def arrived(self) -> int:
        """Bytes that are there, recorded or not; a comparison brings no new ones."""
        return self.part.size + (0 if self.part.comparing else self.flying)

    async def request(self, client: httpx.AsyncClient, run: Run) -> None:
        """One request for `run`, or for as much of it as the server gives."""
        headers = {**web.USER_AGENT, "Accept-Encoding": "identity"}  # a coded body could not be counted
        if web.same_origin(self.address, self.wanted.url):
            headers.update(self.wanted.headers)
        if not self.plain and run.end is not None:
            headers["Range"] = f"bytes={run.start}-{run.end - 1}"
            if self.part.version.validator and self.known:
                headers["If-Range"] = self.part.version.validator
        with web.wording(self.wanted.url):
            async with client.stream("GET", self.address, headers=headers) as response:
                stop = self._check(response, run)
                await self._receive(response, run, stop)

    def _check(self, response: httpx.Response, run: Run) -> int | None:
        """Where in the file the body ends, None where the server does not say; or why it is not taken."""
        version = _version_of(response)
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise LlmrunError(
                DOWNLOAD, f"{web.shown(self.wanted.url)} is sent compressed, though that was not asked for"
            )
        if response.status_code == 206 and not self.plain and run.end is not None:
            run.end = min(run.end, version.total or run.end)
            stop: int | None = min(self._check_range(response, run, version), run.end)
        elif response.status_code == 200:
            stop = self._check_whole(run, version)
        else:
            raise self._refusal(response, run)
        if version.total is not None and self.wanted.size not in (None, version.total):
            raise Again(
                f"the server says {version.total} bytes where {self.wanted.size} are expected", fresh=True
            )
        require_space(self.part.target.parent, (version.total or 0) - self.part.size)
        if not self.known:
            self.part.begin(version)
        if response.history:
            self.address = str(response.url)  # further runs need not be redirected again
        if not self.plain:
            self.ranged.set()
        return stop

    def _check_range(self, response: httpx.Response, run: Run, version: Version) -> int:
        match = web.CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        known = self.part.version
        if not match or int(match[1]) != run.start or int(match[2]) < run.start:
            raise Again("the server sent another part than was asked for", fresh=True)
        if self.known and known.total not in (None, version.total):
            raise Again("the file changed while it was fetched", fresh=True)
        if not self.wanted.sha256:
            if not version.validator:  # nothing would tell whether ranges belong together
                raise Again("the server does not name a version", fresh=True, plain=True, pause=0)
            if self.known and version.validator != known.validator:
                raise Again("the file changed while it was fetched", fresh=True)
        return int(match[2]) + 1

    def _check_whole(self, run: Run, version: Version) -> int | None:
        """The answer holds the whole file, whatever was asked for."""
        if not self.plain and (run.start or self.known):
            changed = bool(version.validator) and version.validator != self.part.version.validator
            raise Again("the server sent the whole file again", fresh=True, plain=not changed, pause=0)
        self.plain, run.end = True, None
        return self.wanted.size if version.total is None else version.total

    def _refusal(self, response: httpx.Response, run: Run) -> Exception:
        status, said = response.status_code, response.headers.get("Content-Range", "")
        if status in (401, 403, 404, 410) and self.address != self.wanted.url:
            self.address = self.wanted.url
            return Again("the address that it led to is not valid any more", pause=0)
        if status == 416 and said.endswith("*/0"):
            return Again("the server sent an empty file", fresh=bool(run.start))
        if status == 416:
            return Again("what was fetched before does not fit the file", fresh=True, plain=not run.start)
        return web.refusal(response, self.wanted.url, self.wanted.denied)

    async def _receive(self, response: httpx.Response, run: Run, stop: int | None) -> None:
        """Record the body, block by block; what there is of a block too, however this ends."""
        buffer = bytearray()
        loop = asyncio.get_running_loop()
        try:
            size = block_size(self.total)
            async for block in response.aiter_raw():
                if stop is not None and run.start + len(buffer) + len(block) > stop:
                    raise Again("the server sent more than it announced", fresh=True)
                buffer += block
                self.flying += len(block)
                if run.start == 0 and not _MAGIC.startswith(buffer[:4]):
                    raise self._no_gguf(buffer)
                while len(buffer) >= (room := size - run.start % size):
                    self._record(run, buffer, room)
                self.on_arrival()
                await asyncio.sleep(self.meter.pace.delay(len(block), loop.time()))
        finally:
            self._record(run, buffer, len(buffer))
        if not run.start:
            raise Again("the server sent an empty file")
        if stop is not None and run.start < stop:
            raise Again(f"the body ended at {run.start} bytes")
        if run.end is None:
            run.end = run.start

    def _record(self, run: Run, buffer: bytearray, count: int) -> None:
        """Write the first `count` bytes of `buffer`. Only what is written leaves the buffer: the rest of it
        belongs right behind."""
        if self.total is None:
            require_space(self.part.target.parent, count)  # nobody said how much there is to come
        if self.part.put(run.start, bytes(buffer[:count])):
            self.changed = True
        run.start += count
        del buffer[:count]
        self.flying -= count

    def _no_gguf(self, buffer: bytearray) -> LlmrunError:
        start = bytes(buffer)
        self.flying -= len(buffer)
        buffer.clear()
        self.part.discard()
        what = "a web page" if start.lstrip().startswith(b"<") else f"bytes that start with {start[:4]!r}"
        return LlmrunError(
            BAD_FILE,
            f"{web.shown(self.wanted.url)} sent {what}, no GGUF file",
            hint="use the link that downloads the file itself",
        )


def _version_of(response: httpx.Response) -> Version:
    etag = response.headers.get("ETag", "")
    validator = etag if etag.startswith('"') else response.headers.get("Last-Modified")
    return Version(validator, web.total_of(response))
