"""Usage goes to disk while the daemon runs: soon after a change, and at the end."""

from __future__ import annotations

import asyncio
import logging

from llmrun.access.usage import UsageLog

log = logging.getLogger(__name__)

EVERY = 1.0
"""Seconds between writes: what a daemon that is killed may forget."""


async def keep(usage: UsageLog) -> None:
    """Write changes until cancelled, and then the last ones. A disk that is full is told of once; the
    numbers stay in memory and are written when there is room."""
    failed = False
    try:
        while True:
            await asyncio.sleep(EVERY)
            failed = (
                await asyncio.to_thread(_write, usage, usage.snapshot(), failed) if usage.changed else failed
            )
    finally:
        if usage.changed:
            _write(usage, usage.snapshot(), failed)


def _write(usage: UsageLog, snapshot: bytes, failed: bool) -> bool:
    """Whether writing failed; what could not be written is tried again."""
    try:
        usage.save(snapshot)
    except OSError as error:
        usage.changed = True
        if not failed:
            log.error("the usage of API keys cannot be written: %s", error)
        return True
    return False
