from __future__ import annotations

from llmrun.api.billing import Bill
from llmrun.types import CallArguments, Finished, Reasoning, Started, Stopped, Text, Usage
from tests.api.scripted import TIMINGS


def test_note_counts_each_token_once_as_it_comes_and_the_engines_count_at_the_end() -> None:
    bill = Bill(2, 0.0)
    events = [Started(10, 42), Reasoning(0, "a"), Text(0, "b"), CallArguments(1, 0, "{"), Stopped(0, "stop")]
    assert [bill.note(event, 1.0) for event in events] == [(10, 0), (0, 1), (0, 1), (0, 1), (0, 0)]
    assert not bill.over
    assert bill.note(Finished(Usage(prompt=10, completion=7), TIMINGS), 2.0) == (0, 4)
    assert bill.over


def test_cut_ends_what_still_runs_with_what_there_is() -> None:
    bill = Bill(3, 0.0)
    bill.note(Started(10, 42), 1.0)
    for number in range(5):
        bill.note(Text(0, "x"), 3.0 + number)
    bill.note(Stopped(1, "stop"), 7.0)
    *stopped, finished = bill.cut(7.0)
    assert stopped == [Stopped(index, "length", limit="tokens") for index in (0, 2)]
    assert isinstance(finished, Finished)
    assert finished.usage == Usage(prompt=10, completion=5)
    timings = finished.timings
    assert (timings.queue_ms, timings.prefill_ms, timings.ttft_ms) == (1000, 2000, 3000)
    assert (timings.decode_ms, timings.itl_ms) == (4000, 1000)
