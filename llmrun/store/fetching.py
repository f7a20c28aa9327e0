"""The network half of a download: what a part still misses, over several connections.

The first answer tells the file's version and length and whether ranges are taken; then each connection takes
the next run that nobody has. All of it happens in one event loop on the calling thread, so a callback that
raises, or Ctrl-C, ends every connection; what had arrived is recorded on the way out.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from llmrun.errors import LlmrunError
from llmrun.store import web
from llmrun.store.disk import BLOCK, human
from llmrun.store.part import Part, Version
from llmrun.store.progress import Meter
from llmrun.store.transfer import Run, Transfer
from llmrun.store.wanted import Wanted
from llmrun.store.web import Again

if TYPE_CHECKING:
    import httpx

CONNECTIONS = 4
RUN = 16 << 20  # bytes asked for at once
PATIENCE = 5  # failures in a row without a new byte
_WORTH_A_NOTE = 2.0  # seconds of waiting
_REPORT_EVERY = 0.2  # seconds
_PULSE = 0.5  # seconds between reports where nothing arrives, so that a callback can end the wait


class Fetching:
    def __init__(self, wanted: Wanted, part: Part, meter: Meter) -> None:
        self.wanted, self.part = wanted, part
        self.transfer = Transfer(wanted, part, meter)

    async def run(self, *, until_change: bool = False) -> None:
        """Fetch what is missing. While the part compares, `until_change` stops at the first difference."""
        if self.part.size and not self._trusted(self.part.version):
            self.part.discard()  # nothing could tell whether the rest still belongs to it
        fruitless, highest = 0, self.part.size
        while True:
            failure = await self._round(until_change and not self.transfer.plain)
            if failure is None:
                return
            fruitless = 0 if self.part.size > highest else fruitless + 1
            highest = max(highest, self.part.size)
            self.part.discard()
            self.transfer.plain = self.transfer.plain or failure.plain
            if fruitless >= PATIENCE:
                raise gave_up(self.transfer, failure) from failure.__cause__
            await _wait(self.transfer, failure, fruitless)

    async def _round(self, until_change: bool) -> Again | None:
        """One go at it; why it must be begun anew, if it must."""
        try:
            await _Round(self.transfer, until_change).run()
        except Again as failure:
            return failure
        return None

    def _trusted(self, version: Version) -> bool:
        """Whether what is there is known to be of the file that is wanted now."""
        same = self.wanted.size in (None, version.total) or version.total is None
        return same and bool(self.wanted.sha256 or version.validator)


def gave_up(transfer: Transfer, failure: Again) -> LlmrunError:
    kept = transfer.part.size
    hint = f"pull again: {human(kept)} are kept and not fetched anew" if kept else "pull again later"
    return web.gave_up(transfer.wanted.url, failure, hint)


async def _wait(transfer: Transfer, failure: Again, fruitless: int) -> None:
    """Let time pass before the next try: what the server asks for, else longer each time."""
    longer = min(web.LONGEST_PAUSE, web.FIRST_PAUSE * 2**fruitless)
    pause = longer if failure.pause is None else failure.pause
    if pause >= _WORTH_A_NOTE:
        transfer.meter.note(f"{failure}; trying again in {pause:.0f} s")
    await asyncio.sleep(pause)


class _Round:
    """All connections, until the file is whole or must be begun anew (`Again`)."""

    def __init__(self, transfer: Transfer, until_change: bool) -> None:
        self.transfer, self.part = transfer, transfer.part
        self.until_change = until_change
        self.taken: list[Run] = []
        self.alive = 0
        self.news: asyncio.Queue[asyncio.Task[None] | None] = asyncio.Queue()
        self.reported, self.reported_at = 0, 0.0
        transfer.begin(lambda: self.news.put_nowait(None))

    async def run(self) -> None:
        if self._next_run() is None:
            return self._report()
        async with web.client(CONNECTIONS) as client:
            tasks = [asyncio.create_task(self._connection(client, lead=not i)) for i in range(CONNECTIONS)]
            for task in tasks:
                task.add_done_callback(self.news.put_nowait)
            tasks.append(asyncio.create_task(self._pulse()))
            try:
                await self._watch()
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        return self._report()

    async def _pulse(self) -> None:
        while True:
            await asyncio.sleep(_PULSE)
            self.news.put_nowait(None)

    async def _watch(self) -> None:
        """Report what arrives, until the lead and all who followed it are done."""
        done = 0
        while not (self.until_change and self.transfer.changed):
            task = await self.news.get()
            if task is not None:
                task.result()
                done += 1
                if done == CONNECTIONS or not self.alive:
                    return
            now = asyncio.get_running_loop().time()
            arrived = self.transfer.arrived
            if arrived - self.reported >= BLOCK or now - self.reported_at >= _REPORT_EVERY:
                self.reported, self.reported_at = arrived, now
                self._report()

    def _report(self) -> None:
        name, total = self.part.target.name, self.transfer.total
        self.transfer.meter.at(name, self.transfer.arrived, total)

    def _next_run(self) -> Run | None:
        """The next bytes that are missing and that no connection is fetching."""
        if self.transfer.plain:
            return None if self.taken or (self.part.size and not self.part.comparing) else Run(0, None)
        if self.transfer.total is None:
            return Run(0, RUN)
        for start, end in self.part.gaps(self.transfer.total):
            at = start
            for run in sorted(self.taken, key=lambda run: run.start):
                if run.end is None or (run.start <= at < run.end):
                    at = end if run.end is None else run.end
            if at < end:
                after = [run.start for run in self.taken if run.start > at]
                return Run(at, min(end, at + RUN, *after))
        return None

    async def _connection(self, client: httpx.AsyncClient, *, lead: bool) -> None:
        if not lead:
            await self.transfer.ranged.wait()
        self.alive += 1
        try:
            while run := self._next_run():
                self.taken.append(run)
                try:
                    if not await self._fetch(client, run):
                        return
                finally:
                    self.taken.remove(run)
                if self.transfer.plain:
                    return
        finally:
            self.alive -= 1

    async def _fetch(self, client: httpx.AsyncClient, run: Run) -> bool:
        """The whole of `run`. False: the server is busy, and this connection leaves the work to others."""
        fruitless = 0
        while run.end is None or run.start < run.end:
            before = run.start
            try:
                await self.transfer.request(client, run)
            except Again as failure:
                if failure.fresh or self.transfer.plain:
                    raise
                if failure.busy and self.alive > 1:
                    return False
                fruitless = 0 if run.start > before else fruitless + 1
                if fruitless >= PATIENCE:
                    raise gave_up(self.transfer, failure) from failure.__cause__
                await _wait(self.transfer, failure, fruitless)
        return True
