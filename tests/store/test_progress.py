from __future__ import annotations

from llmrun.store.progress import Meter, PullProgress


def test_meter_never_goes_back_over_restarts_files_and_sources() -> None:
    seen: list[PullProgress] = []
    meter = Meter(seen.append)
    meter.expect(100)
    meter.at("a", 40, 50)
    meter.at("a", 10, 50)  # fetched anew
    meter.at("a", 50, 50)
    meter.file_done(50)
    meter.at("b", 25, 50)
    meter.expect(100)  # the next source
    meter.at("a", 5, 50)
    meter.note("hm")
    assert [p.completed for p in seen] == [40, 40, 50, 75, 75, 75]
    assert {p.total for p in seen} == {100}
    assert seen[-1].step == "note"


def test_meter_without_a_total_takes_the_files_own_size() -> None:
    seen: list[PullProgress] = []
    meter = Meter(seen.append)
    meter.at("a", 1, None)
    meter.at("a", 2, 10)
    assert [p.total for p in seen] == [None, 10]
