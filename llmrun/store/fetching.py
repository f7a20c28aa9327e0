"""The network half of a download: what a part still misses, over several connections.

The first answer tells the file's version and length and whether ranges are taken; then each connection takes
the next run that nobody has. All of it happens in one event loop on the calling thread, so a callback that
raises, or Ctrl-C, ends every connection; what had arrived is recorded on the way out.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from llmrun.errors import BAD_FILE, DOWNLOAD, LlmrunError
from llmrun.store import web
from llmrun.store.disk import BLOCK, human, require_space
from llmrun.store.part import Part, Version
from llmrun.store.progress import Meter
from llmrun.store.web import DENIED, Again

if TYPE_CHECKING:
    import httpx

CONNECTIONS = 4
RUN = 16 << 20  # bytes asked for at once
PATIENCE = 5  # failures in a row without a new byte
_REPORT_EVERY = 0.2  # seconds
_MAGIC = b"GGUF"
_CONTENT_RANGE = re.compile(r"bytes (\d{1,19})-(\d{1,19})/(\d{1,19})")


@dataclass(frozen=True)
class RangeSum:
    """The SHA-256 of bytes `start` to `end` (not included), as the source states it."""

    start: int
    end: int
    sha256: str


@dataclass(frozen=True)
class Wanted:
    """`size` and `sha256` are what the source promised, None where it promised nothing. `denied` says what
    to do when the server refuses access. `sums` asks the source for the sums of ranges, and gives none where
    it has none; it is called only where the whole is wrong."""

    url: str
    size: int | None = None
    sha256: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    denied: str = DENIED
    sums: Callable[[], tuple[RangeSum, ...]] | None = None


@dataclass(eq=False)
class _Run:
    """What one connection fetches now; `start` moves on as bytes are recorded. `end` None: to the end."""

    start: int
    end: int | None


class Fetching:
    def __init__(self, wanted: Wanted, part: Part, meter: Meter) -> None:
        self.wanted, self.part, self.meter = wanted, part, meter
        self.address = wanted.url
        self.plain = False  # without ranges, in one go
        self.flying = 0  # bytes that arrived and are not recorded yet

    async def run(self, *, until_change: bool = False) -> None:
        """Fetch what is missing. While the part compares, `until_change` stops at the first difference."""
        if self.part.size and not self._trusted(self.part.version):
            self.part.discard()  # nothing could tell whether the rest still belongs to it
        fruitless, highest = 0, self.part.size
        while True:
            failure = await self._round(until_change and not self.plain)
            if failure is None:
                return
            fruitless = 0 if self.part.size > highest else fruitless + 1
            highest = max(highest, self.part.size)
            self.part.discard()
            self.plain = self.plain or failure.plain
            if fruitless >= PATIENCE:
                raise self.gave_up(failure) from failure.__cause__
            await asyncio.sleep(pause_of(failure, fruitless))

    async def _round(self, until_change: bool) -> Again | None:
        """One go at it; why it must be begun anew, if it must."""
        try:
            await _Round(self, until_change).run()
        except Again as failure:
            return failure
        return None

    def _trusted(self, version: Version) -> bool:
        """Whether what is there is known to be of the file that is wanted now."""
        same = self.wanted.size in (None, version.total) or version.total is None
        return same and bool(self.wanted.sha256 or version.validator)

    @property
    def total(self) -> int | None:
        return self.part.version.total if self.wanted.size is None else self.wanted.size

    @property
    def arrived(self) -> int:
        """Bytes that are there, recorded or not; a comparison brings no new ones."""
        return self.part.size + (0 if self.part.comparing else self.flying)

    def gave_up(self, failure: Again) -> LlmrunError:
        kept = self.part.size
        hint = f"pull again: {human(kept)} are kept and not fetched anew" if kept else "pull again later"
        return web.gave_up(self.wanted.url, failure, hint)


def pause_of(failure: Again, fruitless: int) -> float:
    """Seconds to wait before the next try: what the server asks for, else longer each time."""
    return min(web.LONGEST_PAUSE, web.FIRST_PAUSE * 2**fruitless) if failure.pause is None else failure.pause


class _Round:
    """All connections, until the file is whole or must be begun anew (`Again`)."""

    def __init__(self, fetching: Fetching, until_change: bool) -> None:
        self.fetching, self.wanted = fetching, fetching.wanted
        self.part, self.meter = fetching.part, fetching.meter
        self.until_change = until_change
        self.taken: list[_Run] = []
        self.alive = 0
        self.changed = False
        self.ranged = asyncio.Event()  # the first answer said that ranges are taken
        self.news: asyncio.Queue[asyncio.Task[None] | None] = asyncio.Queue()
        self.reported, self.reported_at = 0, 0.0

    async def run(self) -> None:
        if self._next_run() is None:
            return self._report()
        async with web.client(CONNECTIONS) as client:
            tasks = [asyncio.create_task(self._connection(client, lead=not i)) for i in range(CONNECTIONS)]
            for task in tasks:
                task.add_done_callback(self.news.put_nowait)
            try:
                await self._watch()
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        return self._report()

    async def _watch(self) -> None:
        """Report what arrives, until the lead and all who followed it are done."""
        done = 0
        while not self.changed:
            task = await self.news.get()
            if task is not None:
                task.result()
                done += 1
                if done == CONNECTIONS or not self.alive:
                    return
            now = asyncio.get_running_loop().time()
            arrived = self.fetching.arrived
            if arrived - self.reported >= BLOCK or now - self.reported_at >= _REPORT_EVERY:
                self.reported, self.reported_at = arrived, now
                self._report()

    def _report(self) -> None:
        name, total = self.part.target.name, self.fetching.total
        self.meter.at(name, self.fetching.arrived, total)

    def _next_run(self) -> _Run | None:
        """The next bytes that are missing and that no connection is fetching."""
        if self.fetching.plain:
            return None if self.taken or (self.part.size and not self.part.comparing) else _Run(0, None)
        if self.fetching.total is None:
            return _Run(0, RUN)
        for start, end in self.part.gaps(self.fetching.total):
            at = start
            for run in sorted(self.taken, key=lambda run: run.start):
                if run.end is None or (run.start <= at < run.end):
                    at = end if run.end is None else run.end
            if at < end:
                after = [run.start for run in self.taken if run.start > at]
                return _Run(at, min(end, at + RUN, *after))
        return None

    async def _connection(self, client: httpx.AsyncClient, *, lead: bool) -> None:
        if not lead:
            await self.ranged.wait()
        self.alive += 1
        try:
            while run := self._next_run():
                self.taken.append(run)
                try:
                    if not await self._fetch(client, run):
                        return
                finally:
                    self.taken.remove(run)
                if self.fetching.plain:
                    return
        finally:
            self.alive -= 1

    async def _fetch(self, client: httpx.AsyncClient, run: _Run) -> bool:
        """The whole of `run`. False: the server is busy, and this connection leaves the work to others."""
        fruitless = 0
        while run.end is None or run.start < run.end:
            before = run.start
            try:
                await self._request(client, run)
            except Again as failure:
                if failure.fresh or self.fetching.plain:
                    raise
                if failure.busy and self.alive > 1:
                    return False
                fruitless = 0 if run.start > before else fruitless + 1
                if fruitless >= PATIENCE:
                    raise self.fetching.gave_up(failure) from failure.__cause__
                await asyncio.sleep(pause_of(failure, fruitless))
        return True

    async def _request(self, client: httpx.AsyncClient, run: _Run) -> None:
        """One request for `run`, or for as much of it as the server gives."""
        headers = {**web.USER_AGENT, "Accept-Encoding": "identity"}  # a coded body could not be counted
        if web.same_origin(self.fetching.address, self.wanted.url):
            headers.update(self.wanted.headers)
        if not self.fetching.plain and run.end is not None:
            headers["Range"] = f"bytes={run.start}-{run.end - 1}"
            if self.part.version.validator and self.part.size:
                headers["If-Range"] = self.part.version.validator
        with web.wording(self.wanted.url):
            async with client.stream("GET", self.fetching.address, headers=headers) as response:
                stop = self._check(response, run)
                await self._receive(response, run, stop)

    def _check(self, response: httpx.Response, run: _Run) -> int | None:
        """Where in the file the body ends, None where the server does not say; or why it is not taken."""
        version = _version_of(response)
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise LlmrunError(
                DOWNLOAD, f"{web.shown(self.wanted.url)} is sent compressed, though that was not asked for"
            )
        if response.status_code == 206 and not self.fetching.plain and run.end is not None:
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
        if not self.part.size:
            self.part.begin(version)
        if response.history:
            self.fetching.address = str(response.url)  # further runs need not be redirected again
        if not self.fetching.plain:
            self.ranged.set()
        return stop

    def _check_range(self, response: httpx.Response, run: _Run, version: Version) -> int:
        match = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        known = self.part.version
        if not match or int(match[1]) != run.start or int(match[2]) < run.start:
            raise Again("the server sent another part than was asked for", fresh=True)
        if self.part.size and known.total not in (None, version.total):
            raise Again("the file changed while it was fetched", fresh=True)
        if not self.wanted.sha256:
            if not version.validator:  # nothing would tell whether ranges belong together
                raise Again("the server does not name a version", fresh=True, plain=True, pause=0)
            if self.part.size and version.validator != known.validator:
                raise Again("the file changed while it was fetched", fresh=True)
        return int(match[2]) + 1

    def _check_whole(self, run: _Run, version: Version) -> int | None:
        """The answer holds the whole file, whatever was asked for."""
        if not self.fetching.plain and (run.start or self.part.size or len(self.taken) > 1):
            changed = bool(version.validator) and version.validator != self.part.version.validator
            raise Again("the server sent the whole file again", fresh=True, plain=not changed, pause=0)
        self.fetching.plain, run.end = True, None
        return version.total

    def _refusal(self, response: httpx.Response, run: _Run) -> Exception:
        status, said = response.status_code, response.headers.get("Content-Range", "")
        if status in (401, 403, 404, 410) and self.fetching.address != self.wanted.url:
            self.fetching.address = self.wanted.url
            return Again("the address that it led to is not valid any more", pause=0)
        if status == 416 and said.endswith("*/0"):
            return Again("the server sent an empty file", fresh=bool(run.start))
        if status == 416:
            return Again("what was fetched before does not fit the file", fresh=True, plain=not run.start)
        return web.refusal(response, self.wanted.url, self.wanted.denied)

    async def _receive(self, response: httpx.Response, run: _Run, stop: int | None) -> None:
        """Record the body, block by block; what there is of a block too, however this ends."""
        buffer = bytearray()
        loop = asyncio.get_running_loop()
        try:
            async for block in response.aiter_raw():
                if stop is not None and run.start + len(buffer) + len(block) > stop:
                    raise Again("the server sent more than it announced", fresh=True)
                buffer += block
                self.fetching.flying += len(block)
                if run.start == 0 and not _MAGIC.startswith(buffer[:4]):
                    raise self._no_gguf(buffer)
                while len(buffer) >= (room := BLOCK - run.start % BLOCK):
                    self._record(run, buffer, room)
                self.news.put_nowait(None)
                await asyncio.sleep(self.meter.pace.delay(len(block), loop.time()))
        finally:
            self._record(run, buffer, len(buffer))
        if not run.start:
            raise Again("the server sent an empty file")
        if stop is not None and run.start < stop:
            raise Again(f"the body ended at {run.start} bytes")
        if run.end is None:
            run.end = run.start

    def _record(self, run: _Run, buffer: bytearray, count: int) -> None:
        """Write the first `count` bytes of `buffer`. Only what is written leaves the buffer: the rest of it
        belongs right behind."""
        if self.part.put(run.start, bytes(buffer[:count])) and self.until_change:
            self.changed = True
        run.start += count
        del buffer[:count]
        self.fetching.flying -= count

    def _no_gguf(self, buffer: bytearray) -> LlmrunError:
        start = bytes(buffer)
        self.fetching.flying -= len(buffer)
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
    if match := _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", "")):
        return Version(validator, int(match[3]))
    length = response.headers.get("Content-Length", "")
    return Version(validator, int(length) if length.isascii() and length.isdigit() else None)
