from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from llmrun.access import keeping
from llmrun.access.usage import UsageLog


def kept(path: Path) -> int:
    return UsageLog(path).used("a").requests


def test_keep_writes_soon_and_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "EVERY", 0.01)
    path = tmp_path / "state" / "usage.json"
    usage = UsageLog(path)

    async def scenario() -> None:
        task = asyncio.create_task(keeping.keep(usage))
        usage.add("a", 0.0, requests=1)
        for _ in range(500):
            await asyncio.sleep(0.01)
            if kept(path):
                break
        assert kept(path) == 1
        usage.add("a", 0.0, requests=1)
        task.cancel()
        await asyncio.wait({task})

    asyncio.run(scenario())
    assert kept(path) == 2


def test_keep_full_disk_is_told_once_and_numbers_are_written_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "EVERY", 0.005)
    told: list[object] = []
    monkeypatch.setattr(keeping.log, "error", lambda *words: told.append(words))
    usage = UsageLog(tmp_path / "usage.json")
    tries = 0
    thrice = threading.Event()

    def full(_: bytes) -> None:
        nonlocal tries
        tries += 1
        if tries == 3:
            thrice.set()
        raise OSError(28, "No space left on device")

    async def scenario() -> None:
        task = asyncio.create_task(keeping.keep(usage))
        with monkeypatch.context() as patch:
            patch.setattr(usage, "save", full)
            usage.add("a", 0.0, requests=1)
            assert await asyncio.to_thread(thrice.wait, 10)
        task.cancel()
        await asyncio.wait({task})

    asyncio.run(scenario())
    assert kept(tmp_path / "usage.json") == 1
    assert len(told) == 1
