from __future__ import annotations

import json

import pytest

from llmrun.api.openai.responses import kept as module
from llmrun.api.openai.responses.kept import MAX_AGE, KeptResponses
from llmrun.errors import INVALID_REQUEST, NOT_FOUND, LlmrunError
from llmrun.types import Message, ToolCall


def turn(text: str) -> tuple[Message, ...]:
    return (Message(role="user", content=text),)


def kept(*ids: str) -> KeptResponses:
    """One response a second from 0 on; each id is also its conversation."""
    made = KeptResponses()
    for second, name in enumerate(ids):
        made.keep(name, {"id": name}, turn(name), "", now=float(second))
    return made


def has(responses: KeptResponses, name: str, now: float = 10.0) -> bool:
    try:
        return bool(json.loads(responses.response(name, "", now))["id"] == name)
    except LlmrunError:
        return False


def test_kept_response_and_its_conversation_are_found() -> None:
    responses = kept("a", "b")
    assert has(responses, "a")
    assert responses.conversation("b", "", now=10.0) == turn("b")


def test_unknown_id_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(LlmrunError, match="send the whole conversation") as caught:
        kept("a").conversation("b", "", now=1.0)
    assert (caught.value.kind, caught.value.field) == (INVALID_REQUEST, "previous_response_id")


def test_removed_response_is_gone_and_its_room_free() -> None:
    responses = kept("a", "b")
    responses.remove("a", "", now=2.0)
    assert not has(responses, "a")
    assert has(responses, "b")
    with pytest.raises(LlmrunError) as caught:
        responses.remove("a", "", now=2.0)
    assert caught.value.kind is NOT_FOUND


def test_responses_go_when_they_are_too_old() -> None:
    responses = kept("a", "b")
    assert has(responses, "a", now=MAX_AGE)
    assert not has(responses, "a", now=MAX_AGE + 0.5)
    assert has(responses, "b", now=MAX_AGE + 0.5)


def test_oldest_go_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_COUNT", 2)
    responses = kept("a", "b", "c")
    assert [has(responses, name) for name in "abc"] == [False, True, True]


def test_oldest_go_when_all_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SIZE", 38)  # an id's JSON has 10 bytes more
    responses = kept("aaaa", "bbbb")
    assert [has(responses, name) for name in ("aaaa", "bbbb")] == [True, True]
    call = ToolCall(name="f", arguments="{...}")
    responses.keep("c", {"id": "c"}, (Message(role="assistant", tool_calls=(call,)),), "", now=3.0)
    assert [has(responses, name) for name in ("aaaa", "bbbb", "c")] == [False, True, True]


def test_one_too_large_for_all_room_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SIZE", 16)
    responses = kept("abc", "abcd")
    assert not has(responses, "abcd")
    responses.keep("x", {"id": "x"}, turn("xyz"), "", now=3.0)
    assert has(responses, "x")


def test_what_a_response_shows_counts_as_well_as_its_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SIZE", 1000)
    responses = kept("a")
    responses.keep("b", {"id": "b", "metadata": {"x": "y" * 1000}}, turn("b"), "", now=2.0)
    assert not has(responses, "b")


def test_response_is_found_by_nobody_but_who_asked_for_it() -> None:
    responses = kept("a")
    responses.keep("b", {"id": "b"}, turn("b"), "guest", now=1.0)
    assert not has(responses, "b")
    assert responses.conversation("b", "guest", now=1.0) == turn("b")
    for other in ("", "another"):
        with pytest.raises(LlmrunError):
            responses.conversation("b", other, now=1.0)
        with pytest.raises(LlmrunError):
            responses.remove("b", other, now=1.0)
    with pytest.raises(LlmrunError):
        responses.conversation("a", "guest", now=1.0)
