"""What the frame of numbers says of an engine that did something."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from llmrun.engine import Embedder
from llmrun.runner.statistics import Statistics
from tests.support.models import running, tiny_model


class IdleEmbedder:
    running = 0

    class counters:
        prompt_tokens = steps = 0


def test_statistics_of_late_are_those_since_the_last_reading(tmp_path: Path) -> None:
    now = [0.0]
    model = tiny_model(tmp_path)
    with running(model, parallel=2) as work:
        statistics = Statistics(work.engine, cast(Embedder, IdleEmbedder()), lambda: now[0])
        for prompt in ([20, 30, 40], [50, 60, 70]):
            work.submit(prompt, max_tokens=10)
        work.wait(2)
        now[0] = 2.0
        first = statistics.read()
        now[0] = 3.0
        second = statistics.read()
    model.close()
    assert (first.decode_tps, first.prefill_tps) == (10.0, 3.0)
    assert (second.decode_tps, second.prefill_tps) == (0.0, 0.0)
    assert first.occupancy == second.occupancy == pytest.approx(20 / first.decode_steps / 2)
    assert first.kv_retained == 24
    assert 0 < first.itl_p50_ms <= first.itl_p99_ms <= first.itl_max_ms
