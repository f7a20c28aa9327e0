"""Workloads that start their server: its start, what is left after a restart, how its memory grows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from contestants import Contestant, Process
from traffic import Server
from workloads import Figures, lower, prose

_SETTLED_S = 1.0  # what a server does once it is idle, such as writing to disk, is done by then


@asynccontextmanager
async def started(contestant: Contestant) -> AsyncIterator[tuple[Process, Server]]:
    """The contestant's server, as long as it is wanted."""
    process = contestant.start()
    server = Server(contestant.name, process.url, process.model)
    try:
        yield process, server
    finally:
        await server.close()
        process.stop()


async def start(contestant: Contestant) -> Figures:
    """From the start of the program to the first token, and the most memory it then has had."""
    async with started(contestant) as (process, server):
        reading = await server.complete(prose(10), 2)
        return {
            "start to first token s": lower(reading.arrivals[0] - process.began),
            "peak memory MB": lower(process.peak_memory() / 1e6),
        }


async def restart(contestant: Contestant) -> Figures:
    """A prompt of some 3,000 tokens again, after the server was stopped and started."""
    prompt = prose(1200)
    for _ in range(2):
        async with started(contestant) as (_, server):
            await server.complete("Hello", 1)  # the model is loaded
            reading = await server.complete(prompt, 2)
            await asyncio.sleep(_SETTLED_S)
    return {"TTFT s": lower(reading.ttft)}


async def growth(contestant: Contestant) -> Figures:
    """What 40 prompts of some 1,000 tokens, one after the other, add to the memory."""
    async with started(contestant) as (process, server):
        await server.complete("Hello", 1)
        before = process.memory()
        for _ in range(40):
            await server.complete(prose(400), 1)
        return {"memory added MB": lower((process.memory() - before) / 1e6)}


LIFECYCLE: dict[str, Callable[[Contestant], Awaitable[Figures]]] = {
    work.__name__: work for work in (start, restart, growth)
}
