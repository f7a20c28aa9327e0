from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from llmrun.config import Paths
from llmrun.store import Store, StoredModel, web
from llmrun.store.progress import PullProgress
from tests.store.server import Host, serving

_BUNDLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


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
def _own_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """The servers of these tests are on this machine, whatever proxy and certificates its user has set."""
    monkeypatch.delenv("LLMRUN_OFFLINE", raising=False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", *_BUNDLES):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "FIRST_PAUSE", 0.001)


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


class Pulled(NamedTuple):
    url: str
    model: StoredModel


def files_under(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty catalogue folder in place of the real one."""
    folder = tmp_path / "catalogue"
    folder.mkdir()
    monkeypatch.setattr("llmrun.store.catalogue.catalogue_folder", lambda: folder)
    return folder
