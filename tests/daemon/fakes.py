"""What several of these tests need: models to want, a store that holds them, the fake runner's command."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from llmrun.daemon.child import Patience
from llmrun.daemon.process import Limits
from llmrun.daemon.wanted import Wanted
from llmrun.errors import UNKNOWN_MODEL, LlmrunError
from llmrun.runner.frames import Load
from llmrun.store import Removed, StoredModel
from llmrun.types import Event, GenerateRequest, Options
from tests.support.frames import model_info

COMMAND = [sys.executable, str(Path(__file__).with_name("fake_runner.py"))]
LIMITS = Limits(load_stall=20, patience=Patience(end_of_file=5, terminate=5, kill=5, output=2))
NO_OPTIONS = Options()
INFO = model_info()


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a test's coroutine; one that hangs fails."""

    async def bounded() -> Any:
        return await asyncio.wait_for(coroutine, 60)

    return asyncio.run(bounded())


async def until(condition: Callable[[], Any]) -> None:
    """Wait for another process, or fail after half a minute."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "waited for in vain"
        await asyncio.sleep(0.01)


def wanted(
    name: str,
    *,
    ctx: int | None = None,
    version: str = "1",
    cost: int = 100,
    keep_alive: float | None = None,
    cache: int = 0,
) -> Wanted:
    return Wanted(Load(name=name, path=f"/{name}.gguf", ctx=ctx), version, cost, keep_alive, cache)


def request(
    prompt: str, *, model: str = "a", id: str = "r1", options: Options = NO_OPTIONS
) -> GenerateRequest:
    return GenerateRequest(id=id, model=model, prompt=prompt, options=options)


def stored(path: Path, name: str = "a", **values: Any) -> StoredModel:
    facts: dict[str, Any] = {
        "files": (path,),
        "size": 100,
        "sha256": "0" * 64,
        "source": str(path),
        "modified": datetime(2026, 1, 1, tzinfo=timezone.utc),
        "architecture": "llama",
        "quant": "Q4_1",
        "parameters": 1_000_000,
        "ctx_train": 8192,
        "options": NO_OPTIONS,
        "system": None,
        "template": None,
        "license": "MIT",
        "kind": "chat",
        "in_place": True,
    }
    return StoredModel(name=name, path=path, **(facts | values))


class FakeStore:
    """Models by name, none of them on disk; see fake_runner for what the scripts do."""

    def __init__(self, folder: Path, **scripts: str) -> None:
        self.folder = folder
        self.models = {name: stored(folder / f"{script}.gguf", name) for name, script in scripts.items()}

    def change(self, name: str, **values: Any) -> None:
        self.models[name] = replace(self.models[name], **values)

    def resolve(self, name: str) -> StoredModel:
        if name not in self.models:
            raise LlmrunError(UNKNOWN_MODEL, f"no model is called {name!r}")
        return self.models[name]

    def remove(self, name: str) -> Removed:
        return Removed(self.models.pop(self.resolve(name).name).name, 0, in_place=True)

    def loads(self) -> list[str]:
        """Names of the models that runners began to load, in order."""
        return _lines(self.folder / "loads")

    def cancels(self) -> list[str]:
        """Ids of the requests that runners were told to cancel, in order."""
        return _lines(self.folder / "cancels")

    def list(self) -> list[StoredModel]:
        return sorted(self.models.values(), key=lambda model: model.name)


def _lines(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def kinds(events: list[Event]) -> list[str]:
    return [type(event).__name__ for event in events]
