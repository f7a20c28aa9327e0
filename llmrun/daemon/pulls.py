"""Long work of the store as a stream of its progress. In: a blocking call. Out: progress, on the event loop.

The call has a thread of its own, which ends with the process: what was fetched is kept, and the next pull
goes on from it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress

from llmrun.store import PullProgress

Tell = Callable[[PullProgress], None]


class _Abandoned(Exception):
    """Nobody wants the result any more."""


async def progress_of(work: Callable[[Tell], object]) -> AsyncGenerator[PullProgress, None]:
    """What `work` tells while it runs; it is done when this ends. Raises what it raises.

    Closing the generator stops the work the next time that it tells something.
    """
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[PullProgress | Exception | None] = asyncio.Queue()
    abandoned = threading.Event()

    def tell(item: PullProgress | Exception | None) -> None:
        if abandoned.is_set():  # the loop may be gone as well
            raise _Abandoned
        loop.call_soon_threadsafe(arrived.put_nowait, item)

    def run() -> None:
        outcome = None
        try:
            work(tell)
        except Exception as error:
            outcome = error
        with suppress(_Abandoned):
            tell(outcome)

    threading.Thread(target=run, name="store", daemon=True).start()
    try:
        while (item := await arrived.get()) is not None:
            if isinstance(item, Exception):
                raise item
            yield item
    finally:
        abandoned.set()
