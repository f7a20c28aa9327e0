from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from llmrun.api import sse


@given(st.text())
def test_event_any_text_is_one_line_for_every_reader(text: str) -> None:
    sent = sse.event({"text": text})
    assert sent.startswith(b"data: ")
    assert len(sent.decode().splitlines()) == 2  # the data and the blank line
    assert msgspec.json.decode(sent.removeprefix(b"data: ")) == {"text": text}


def test_event_line_ends_of_unicode_are_escaped() -> None:
    assert sse.event("a\u2028\u2029\x85b…") == b'data: "a\\u2028\\u2029\\u0085b\xe2\x80\xa6"\n\n'


def test_event_with_a_name_says_it_first() -> None:
    assert sse.event({"a": 1}, "message_stop") == b'event: message_stop\ndata: {"a":1}\n\n'
