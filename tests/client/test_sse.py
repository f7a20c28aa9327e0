from __future__ import annotations

import pytest

from llmrun.client.sse import event_data, split_lines


def test_event_data_events_comments_and_other_fields_yields_only_data() -> None:
    stream = b": ping\n\nevent: x\nid: 3\ndata: one\n\ndata:two\ndata: three\n\n: end\n\n"
    assert list(event_data([stream])) == ["one", "two\nthree"]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_event_data_cut_anywhere_by_the_network_is_the_same(size: int) -> None:
    stream = "data: héllo \U0001f600\r\n\r\ndata: b\r\n\r\n".encode()
    chunks = [stream[i : i + size] for i in range(0, len(stream), size)]
    assert list(event_data(chunks)) == ["héllo \U0001f600", "b"]


def test_event_data_incomplete_last_event_is_dropped() -> None:
    assert list(event_data([b"data: a\n\ndata: b\n"])) == ["a"]


def test_split_lines_unicode_line_ends_belong_to_the_text() -> None:
    text = "a\u2028b\u0085c\u000bd"
    assert list(split_lines([f"{text}\n".encode()])) == [text]
