from __future__ import annotations

import itertools
import os

import pytest

from llmrun.runner.frames import (
    PREFIX_SIZE,
    Cancel,
    Events,
    FrameSplitter,
    Load,
    LoadProgress,
    Shutdown,
    Submit,
    decode_up,
    encode,
)
from llmrun.runner.pipes import FrameWriter, read_frames
from llmrun.types import GenerateRequest, Text
from tests.support.frames import stats

STATS = stats(kv_total=8)


def test_read_frames_gives_what_was_written_until_the_pipe_closes() -> None:
    frames = [
        Load(name="m", path="/m.gguf", ctx=5),
        Submit(GenerateRequest(id="a", model="m", prompt=(1, 2), logit_bias={3: -1.0})),
        Cancel("a"),
        Shutdown(),
    ]
    reading, writing = os.pipe()
    os.write(writing, b"".join(map(encode, frames)))
    os.close(writing)
    assert list(read_frames(reading)) == frames


@pytest.mark.parametrize("kept", [1, PREFIX_SIZE, PREFIX_SIZE + 2])
def test_read_frames_of_a_frame_cut_short_ends(kept: int) -> None:
    reading, writing = os.pipe()
    os.write(writing, encode(Cancel("abcdef"))[:kept])
    os.close(writing)
    assert list(read_frames(reading)) == []


def test_writer_keeps_the_order_and_sends_statistics_after_work() -> None:
    reading, writing = os.pipe()
    ticks = itertools.count()
    writer = FrameWriter(writing, lambda: float(next(ticks)))  # every look at the clock is a second later
    writer.stats = lambda: STATS
    writer.start()
    for i in range(3):
        writer.put(Events([("a", Text(i, "x"))]))
    writer.close()
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        found = [decode_up(body) for body in FrameSplitter().feed(stream.read())]
    events = [frame for frame in found if isinstance(frame, Events)]
    assert [frame.items[0][1] for frame in events] == [Text(i, "x") for i in range(3)]
    assert found[-1] == STATS


def test_writer_sends_no_statistics_while_the_model_loads() -> None:
    reading, writing = os.pipe()
    ticks = itertools.count()
    writer = FrameWriter(writing, lambda: float(next(ticks)))
    writer.stats = lambda: STATS
    writer.start()
    loading = [LoadProgress(0.1), LoadProgress(0.2)]
    for frame in loading:
        writer.put(frame)
    writer.close()
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        assert [decode_up(body) for body in FrameSplitter().feed(stream.read())] == loading
