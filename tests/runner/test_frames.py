from __future__ import annotations

import contextlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmrun.runner.frames import (
    MAX_FRAME,
    Down,
    FrameSplitter,
    Shutdown,
    Submit,
    decode_down,
    decode_up,
    encode,
    frame_length,
)
from llmrun.types import GenerateRequest

FRAMES: list[Down] = [Shutdown(), Submit(GenerateRequest(id="a", model="m", prompt="x" * 300)), Shutdown()]


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


def test_frame_length_beyond_the_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="longer than"):
        frame_length((MAX_FRAME + 1).to_bytes(4, "little"))


@given(st.binary(max_size=200))
def test_decode_of_random_bytes_is_a_frame_or_a_decode_error(body: bytes) -> None:
    for decode in (decode_down, decode_up):
        with contextlib.suppress(msgspec.DecodeError):
            decode(body)


@given(
    st.lists(st.sampled_from(FRAMES), min_size=1, max_size=4),
    st.integers(0, 2000),
    st.integers(0, 255),
    st.lists(st.integers(1, 60), max_size=30),
)
def test_stream_with_a_damaged_byte_gives_frames_or_an_error_and_keeps_no_more_than_came(
    frames: list[Down], where: int, byte: int, sizes: list[int]
) -> None:
    stream = bytearray(b"".join(map(encode, frames)))
    stream[where % len(stream)] = byte
    splitter = FrameSplitter()
    rest, fed = bytes(stream), 0
    with contextlib.suppress(ValueError, msgspec.DecodeError):
        for size in [*sizes, len(rest)]:
            for body in splitter.feed(rest[:size]):
                decode_down(body)
            rest, fed = rest[size:], fed + size
            assert splitter.pending <= min(fed, len(stream))


@pytest.mark.parametrize("opening", [b"\x91", b"\x81\xa1a"], ids=["lists", "objects"])
def test_decode_of_bottomless_nesting_is_an_error_of_its_own(opening: bytes) -> None:
    for decode in (decode_down, decode_up):
        with pytest.raises((msgspec.DecodeError, RecursionError)):
            decode(opening * 1_000_000)
