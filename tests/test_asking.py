from __future__ import annotations

import pytest

from llmrun.asking import as_messages, as_options
from llmrun.errors import LlmrunError
from llmrun.types import Message, Options


def test_as_messages_of_text_is_one_users_turn() -> None:
    assert as_messages("hi") == (Message(role="user", content="hi"),)


def test_as_messages_of_mappings_are_messages() -> None:
    system = Message(role="system", content="be brief")
    assert as_messages([system, {"role": "user", "content": "hi"}]) == (
        system,
        Message(role="user", content="hi"),
    )


def test_as_messages_of_an_unknown_role_is_refused() -> None:
    with pytest.raises(LlmrunError, match="robot"):
        as_messages([{"role": "robot", "content": "hi"}])


def test_as_options_by_name_are_options() -> None:
    assert as_options({"temperature": 0, "stop": ["a"]}) == Options(temperature=0.0, stop=("a",))


@pytest.mark.parametrize(("name", "value"), [("temprature", 1), ("top_k", "many")])
def test_as_options_wrong_one_is_named(name: str, value: object) -> None:
    with pytest.raises(LlmrunError, match=name):
        as_options({name: value})
