from __future__ import annotations

from collections.abc import Generator

import pytest

from llmrun.reply import ReplyStream
from llmrun.types import Event, Finished, Reasoning, Started, Stopped, Text, Usage
from tests.api.scripted import TIMINGS

USAGE = Usage(prompt=3, completion=4, reasoning=2)


def told(closed: list[bool]) -> Generator[Event, None, None]:
    try:
        yield Started(3, 1)
        yield Reasoning(0, "two and ")
        yield Reasoning(0, "two")
        yield Text(0, "It is ")
        yield Text(0, "four")
        yield Stopped(0, "stop")
        yield Finished(USAGE, TIMINGS)
    finally:
        closed.append(True)


def test_reply_is_its_text_and_has_the_rest_beside_it() -> None:
    reply = ReplyStream(told([])).whole()
    assert reply == "It is four"
    assert (reply.reasoning, reply.finish_reason) == ("two and two", "stop")
    assert (reply.usage, reply.timings) == (USAGE, TIMINGS)


def test_reply_stream_gives_text_alone_or_all_parts() -> None:
    stream = ReplyStream(told([]))
    assert list(stream) == ["It is ", "four"]
    assert (stream.text, stream.reasoning, stream.usage) == ("It is four", "two and two", USAGE)
    parts = [(type(part), part.text) for part in ReplyStream(told([])).parts()]
    assert parts[:3] == [(Reasoning, "two and "), (Reasoning, "two"), (Text, "It is ")]


@pytest.mark.parametrize("how", ["close", "leave", "let go"])
def test_reply_stream_that_is_left_ends_the_answer(how: str) -> None:
    closed: list[bool] = []
    stream = ReplyStream(told(closed))
    assert next(stream) == "It is "
    assert closed == []
    if how == "close":
        stream.close()
    elif how == "leave":
        with stream:
            pass
    else:
        del stream
    assert closed == [True]
