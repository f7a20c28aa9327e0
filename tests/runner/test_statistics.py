"""What the frame of numbers says of an engine that did something."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from llmrun.engine import Embedder, ThreadChoice
from llmrun.runner.statistics import Statistics
from tests.support.models import running, tiny_model


class IdleEmbedder:
    running = 0

    class counters:
        prompt_tokens = steps = 0


def test_statistics_of_late_are_of_the_steps_since_the_last_reading(tmp_path: Path) -> None:
    model = tiny_model(tmp_path)
    with running(model, parallel=2, threads=ThreadChoice(1)) as work:
        statistics = Statistics(work.engine, cast(Embedder, IdleEmbedder()))
        for prompt in ([20, 30, 40], [50, 60, 70]):
            work.submit(prompt, max_tokens=10)
        work.wait(2)
        first = statistics.read()
        assert statistics.read() == first, "nothing was computed in between"
        work.answer([20, 30, 41], max_tokens=5)
        second = statistics.read()
    model.close()
    assert first.decode_tps == pytest.approx(20 / first.busy_seconds)
    assert first.prefill_tps == pytest.approx(6 / first.busy_seconds)
    assert first.occupancy == pytest.approx(20 / first.decode_steps / 2)
    assert (first.kv_retained, first.threads) == (24, 1)
    assert 0 < first.itl_p50_ms <= first.itl_p99_ms <= first.itl_max_ms
    assert second.decode_tps == pytest.approx(5 / (second.busy_seconds - first.busy_seconds))
    assert second.occupancy == 0.5
