"""Media in requests: refused in every dialect, by address or not, and no address is looked at."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from llmrun.api.app import create_app
from llmrun.config import Settings
from tests.api.conftest import BASE
from tests.api.openai.test_models import stored
from tests.api.scripted import MODEL, ScriptedService

ADDRESSES = [
    "http://127.0.0.1:{port}/x.png",
    "http://2130706433:{port}/x.png",
    "http://0x7f.1:{port}/x.png",
    "http://0.0.0.0:{port}/x.png",
    "http://[::ffff:127.0.0.1]:{port}/x.png",
    "http://user@127.0.0.1:{port}/x.png",
    "file:///etc/passwd",
    "data:image/png;base64,AAAA",
]


def bodies(address: str) -> dict[str, dict[str, Any]]:
    """A body with a picture at `address` for each dialect's route."""
    openai = {"type": "image_url", "image_url": {"url": address}}
    responses = {"type": "input_image", "image_url": address}
    anthropic = {"type": "image", "source": {"type": "url", "url": address}}
    return {
        "/v1/chat/completions": {"messages": [{"role": "user", "content": [openai]}]},
        "/v1/responses": {"input": [{"role": "user", "content": [responses]}]},
        "/v1/messages": {"max_tokens": 5, "messages": [{"role": "user", "content": [anthropic]}]},
        "/api/chat": {"messages": [{"role": "user", "content": "", "images": [address]}]},
        "/api/generate": {"prompt": "x", "images": [address]},
        "/completion": {"prompt": {"prompt_string": "x", "multimodal_data": [address]}},
    }


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as waiting:
        waiting.setblocking(False)
        yield waiting


@pytest.mark.parametrize("lenient", [False, True], ids=["strict", "lenient"])
@pytest.mark.parametrize("address", ADDRESSES)
def test_media_of_any_address_are_refused_and_nobody_is_asked(
    listener: socket.socket, address: str, lenient: bool
) -> None:
    service = ScriptedService(stored=[stored(MODEL)])
    app = create_app(service, Settings(lenient=lenient), lambda: None)
    address = address.format(port=listener.getsockname()[1])
    with TestClient(app, base_url=BASE) as http:
        for path, body in bodies(address).items():
            reply = http.post(path, json={"model": MODEL, **body})
            passed_over = reply.headers.get("x-llmrun-not-honoured") == "images" and lenient
            assert reply.status_code == 400 or passed_over, (path, reply.text)
    with pytest.raises(BlockingIOError):
        listener.accept()
