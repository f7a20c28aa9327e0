from __future__ import annotations

import asyncio

from llmrun.api.asker import note_asker, of_asker
from llmrun.types import DetokenizeRequest, GenerateRequest


def client(address: str = "127.0.0.1", user: str = "", **headers: str) -> str:
    """The name that a request of this asker gets, in a task of its own."""

    async def ask() -> str:
        note_asker(address, {name.replace("_", "-"): value for name, value in headers.items()})
        return of_asker(GenerateRequest(id="1", model="m", client=user)).client

    return asyncio.run(ask())


def test_asker_is_told_by_key_address_program_and_user() -> None:
    names = {
        client(),
        client("10.0.0.1"),
        client(x_api_key="a"),
        client(authorization="Bearer a"),
        client(user_agent="curl"),
        client(user="ann"),
    }
    assert len(names) == 6
    assert client(user="ann", user_agent="curl") == client(user="ann", user_agent="curl")


def test_asker_name_does_not_show_the_key() -> None:
    assert "secret" not in client(x_api_key="secret", authorization="Bearer secret")


def test_of_asker_leaves_alone_what_does_not_queue() -> None:
    request = DetokenizeRequest(id="1", model="m", tokens=(1,))
    assert of_asker(request) is request
