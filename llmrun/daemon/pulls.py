"""A pull as a stream of its progress. In: a store's blocking `pull`. Out: progress, on the event loop.

The pull has a thread of its own, which ends with the process: what was fetched is kept, and the next pull
goes on from it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Protocol

from llmrun.store import PullProgress, StoredModel


class Puller(Protocol):
    """The part of the store that fetches models."""

    def pull(
        self, reference: str, *, on_progress: Callable[[PullProgress], None] | None = None
    ) -> StoredModel: ...


class _Abandoned(Exception):
    """Nobody wants the model any more."""


async def pulling(store: Puller, reference: str) -> AsyncGenerator[PullProgress, None]:
    """The progress of pulling `reference`; the model is there when this ends. Raises what the pull raises.

    Closing the generator stops the pull at the next bytes that arrive.
    """
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[PullProgress | Exception | None] = asyncio.Queue()
    abandoned = threading.Event()

    def tell(item: PullProgress | Exception | None) -> None:
        if abandoned.is_set():  # the loop may be gone as well
            raise _Abandoned
        loop.call_soon_threadsafe(arrived.put_nowait, item)

    def work() -> None:
        outcome = None
        try:
            store.pull(reference, on_progress=tell)
        except Exception as error:
            outcome = error
        with suppress(_Abandoned):
            tell(outcome)

    threading.Thread(target=work, name=f"pull {reference}", daemon=True).start()
    try:
        while (item := await arrived.get()) is not None:
            if isinstance(item, Exception):
                raise item
            yield item
    finally:
        abandoned.set()
