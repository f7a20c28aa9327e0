from __future__ import annotations

import pytest

from llmrun.daemon.replies import Replies, Reply
from llmrun.errors import CANCELLED, CONFLICT, RUNNER_DIED, LlmrunError
from llmrun.types import Event, Failed, Finished, Text, Timings, Usage
from tests.daemon.fakes import run

FINISHED = Finished(
    usage=Usage(prompt=1, completion=1),
    timings=Timings(queue_ms=0, prefill_ms=0, decode_ms=0, ttft_ms=0, itl_ms=0),
)
DIED = LlmrunError(RUNNER_DIED, "the engine died")
CANCEL = Failed(LlmrunError(CANCELLED, "the client left").info())


def drain(reply: Reply) -> list[Event]:
    async def all_of_it() -> list[Event]:
        return [event async for event in reply]

    result: list[Event] = run(all_of_it())
    return result


def test_deliver_sorts_by_request() -> None:
    replies = Replies()
    a, b = replies.open("a"), replies.open("b")
    replies.deliver([("a", Text(0, "1")), ("b", Text(0, "2")), ("a", FINISHED), ("b", FINISHED)])
    assert drain(a) == [Text(0, "1"), FINISHED]
    assert drain(b) == [Text(0, "2"), FINISHED]


def test_deliver_after_the_last_event_leads_nowhere() -> None:
    replies = Replies()
    reply = replies.open("a")
    replies.deliver([("a", FINISHED), ("a", FINISHED), ("a", Text(0, "late"))])
    replies.fail_all(DIED)
    assert drain(reply) == [FINISHED]


def test_fail_all_ends_each_reply_once() -> None:
    replies = Replies()
    a, b = replies.open("a"), replies.open("b")
    replies.fail_all(DIED)
    replies.fail_all(DIED)
    assert drain(a) == drain(b) == [Failed(DIED.info())]


def test_open_id_in_use_is_a_conflict() -> None:
    replies = Replies()
    replies.open("a")
    with pytest.raises(LlmrunError) as caught:
        replies.open("a")
    assert caught.value.kind is CONFLICT


def test_drop_keeps_the_id_until_the_runner_has_ended_the_request() -> None:
    replies = Replies()
    first = replies.open("a")
    assert replies.drop(first)
    with pytest.raises(LlmrunError):
        replies.open("a")
    replies.deliver([("a", Text(0, "late")), ("a", CANCEL)])
    second = replies.open("a")
    replies.deliver([("a", FINISHED)])
    assert drain(second) == [FINISHED]
    assert not replies.drop(first)
    assert not replies.drop(second)
