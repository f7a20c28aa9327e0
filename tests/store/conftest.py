from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from llmrun.config import Paths
from llmrun.store import Store, download
from llmrun.store.progress import PullProgress
from tests.store.server import Host, serving


@pytest.fixture
def host() -> Iterator[Host]:
    with serving() as running:
        yield running


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """Folders whose names hold what shells and careless code trip over."""
    return Paths.find({"LLMRUN_HOME": str(tmp_path / "my store 模型\u3000🦙")})


@pytest.fixture
def store(paths: Paths) -> Store:
    return Store(paths)


@pytest.fixture
def progress() -> list[PullProgress]:
    return []


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "FIRST_PAUSE", 0.001)


@pytest.fixture
def hub(host: Host, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Host:
    """The real Hub client pointed at `host`, with an empty cache and no token."""
    from huggingface_hub import constants

    monkeypatch.setenv("HF_ENDPOINT", host.address)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub cache"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no token"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    return host


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
