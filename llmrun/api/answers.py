"""Requests down to the daemon, their events up: checked, and as one stream where they are several.

Knows no dialect. A failure is raised, so that what comes out is only what an answer is made of.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from llmrun.api.asker import of_asker
from llmrun.api.ports import Service
from llmrun.errors import INTERNAL, LlmrunError
from llmrun.types import AnyRequest, Event, Failed, Finished

AT_ONCE = 32
"""Prompts of one body that are with the daemon at the same time; the others wait here."""

Numbered = tuple[int, Event]


async def answers(service: Service, requests: Sequence[AnyRequest]) -> AsyncGenerator[Numbered, None]:
    """Every event of every request, with the request's number. LlmrunError where one of them fails.

    Closing the generator, or the first failure, cancels all that still run.
    """
    if len(requests) == 1:
        async with aclosing(_one(service, requests[0])) as events:
            async for event in events:
                yield 0, event
    else:
        async with aclosing(_several(service, requests)) as numbered:
            async for pair in numbered:
                yield pair


async def _one(service: Service, request: AnyRequest) -> AsyncGenerator[Event, None]:
    async with aclosing(service.ask(of_asker(request))) as events:
        async for event in events:
            if isinstance(event, Failed):
                raise LlmrunError.from_info(event.error)
            yield event
            if isinstance(event, Finished):
                return
    raise LlmrunError(INTERNAL, "the answer broke off without an end")


async def _several(service: Service, requests: Sequence[AnyRequest]) -> AsyncGenerator[Numbered, None]:
    arrived: asyncio.Queue[Numbered | Exception | None] = asyncio.Queue(maxsize=AT_ONCE)
    places = asyncio.Semaphore(AT_ONCE)

    async def run(number: int, request: AnyRequest) -> None:
        try:
            async with places, aclosing(_one(service, request)) as events:
                async for event in events:
                    await arrived.put((number, event))
            await arrived.put(None)
        except Exception as error:
            await arrived.put(error)

    tasks = [asyncio.create_task(run(number, request)) for number, request in enumerate(requests)]
    try:
        running = len(tasks)
        while running:
            item = await arrived.get()
            if isinstance(item, Exception):
                raise item
            if item is None:
                running -= 1
            else:
                yield item
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
