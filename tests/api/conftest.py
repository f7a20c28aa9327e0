from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from llmrun.api.app import create_app
from llmrun.config import Settings
from tests.api.scripted import ScriptedService

BASE = "http://127.0.0.1:11435"


@pytest.fixture
def service() -> ScriptedService:
    return ScriptedService()


@pytest.fixture
def shutdowns() -> list[str]:
    """Grows by one each time a client asks the daemon to end."""
    return []


@pytest.fixture
def http(service: ScriptedService, shutdowns: list[str]) -> Iterator[TestClient]:
    app = create_app(service, Settings(), lambda: shutdowns.append("asked"))
    with TestClient(app, base_url=BASE, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def play(shared: tuple[ScriptedService, object]) -> Iterator[ScriptedService]:
    """The service that a module's `shared` begins with, whose script a test may change."""
    service, _ = shared
    before = service.script
    yield service
    service.script = before
