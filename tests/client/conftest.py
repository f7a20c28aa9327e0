from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from llmrun.client.client import Client
from tests.api.scripted import ScriptedService
from tests.api.server import serving


@pytest.fixture
def service() -> ScriptedService:
    """What the daemon does when asked."""
    return ScriptedService()


@pytest.fixture
def client(service: ScriptedService) -> Iterator[Client]:
    """A client of the real HTTP app over that service."""
    with serving(service) as url:
        address = urlsplit(url)
        assert address.hostname
        assert address.port
        with Client(address.hostname, address.port) as client:
            yield client
