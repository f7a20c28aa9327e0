from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmrun.daemon.framing import FrameSplitter
from llmrun.runner.frames import MAX_FRAME, Down, Shutdown, Submit, decode_down, encode
from tests.daemon.fakes import request

FRAMES: list[Down] = [Shutdown(), Submit(request("x" * 300)), Shutdown()]


@given(st.lists(st.integers(1, 400), max_size=20))
def test_feed_in_any_pieces_gives_the_frames(sizes: list[int]) -> None:
    stream = b"".join(map(encode, FRAMES))
    splitter = FrameSplitter()
    bodies: list[bytes] = []
    for size in [*sizes, len(stream)]:
        bodies += splitter.feed(stream[:size])
        stream = stream[size:]
    assert [decode_down(body) for body in bodies] == FRAMES
    assert splitter.pending == 0


def test_pending_counts_what_is_not_complete() -> None:
    splitter = FrameSplitter()
    assert list(splitter.feed(encode(Shutdown())[:-1])) == []
    assert splitter.pending == len(encode(Shutdown())) - 1


def test_feed_text_is_no_frame() -> None:
    with pytest.raises(ValueError, match=str(MAX_FRAME)):
        list(FrameSplitter().feed(b"hello, I am a library that prints"))
