from __future__ import annotations

from itertools import repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmrun.client import sse
from llmrun.client.sse import event_data, split_lines
from llmrun.errors import INTERNAL, LlmrunError

LINES = st.sampled_from(
    [b"data", b"data:", b"data: x", b": ping", b"", b"event: e", b"\xff\xfe", b"data: \xe2\x80"]
)


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


@given(
    st.lists(st.one_of(LINES, st.binary(max_size=12)), max_size=20), st.lists(st.integers(1, 9), max_size=40)
)
def test_event_data_of_any_bytes_is_the_same_however_they_are_cut(
    lines: list[bytes], sizes: list[int]
) -> None:
    stream = rest = b"\n".join(lines)
    chunks = []
    for size in sizes:
        chunks.append(rest[:size])
        rest = rest[size:]
    assert list(event_data([*chunks, rest])) == list(event_data([stream]))


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])), max_size=8))
def test_event_data_gives_back_what_was_sent(texts: list[str]) -> None:
    stream = "".join(f"data: {text}\n\n" for text in texts).encode()
    assert list(event_data([stream])) == texts


@pytest.mark.parametrize("piece", [b"x", b"data: x\n"], ids=["line", "event"])
def test_event_data_without_end_is_an_error_in_bounded_memory(
    piece: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT", 1000)
    with pytest.raises(LlmrunError, match="more than 1000 bytes") as failed:
        list(event_data(repeat(piece)))
    assert failed.value.kind is INTERNAL
