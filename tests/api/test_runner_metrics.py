from __future__ import annotations

from starlette.testclient import TestClient

from llmrun.api import runner_metrics
from llmrun.types import Stats
from tests.api.scripted import MODEL, ScriptedService
from tests.api.test_control import running
from tests.support.frames import stats

COUNTED_BY_THE_DAEMON = {"prompt_tokens", "cached_tokens", "completion_tokens"}


def test_runner_metrics_have_units_tiers_and_quantiles(http: TestClient, service: ScriptedService) -> None:
    said = stats(kv_disk_bytes=7000, hits_ram=3, itl_p95_ms=25.0, occupancy=0.5, preemptions=2, drafted=9)
    service.running = [running(stats=said)]
    lines = http.get("/metrics").text.splitlines()
    for line in (
        f'llmrun_model_kv_saved_bytes{{model="{MODEL}",tier="disk"}} 7000.0',
        f'llmrun_model_prefix_hits_total{{model="{MODEL}",tier="ram"}} 3.0',
        f'llmrun_model_inter_token_seconds{{model="{MODEL}",quantile="0.95"}} 0.025',
        f'llmrun_model_batch_occupancy_ratio{{model="{MODEL}"}} 0.5',
        f'llmrun_model_preemptions_total{{model="{MODEL}"}} 2.0',
        f'llmrun_model_drafted_tokens_total{{model="{MODEL}"}} 9.0',
    ):
        assert line in lines


def test_runner_metrics_show_every_number_of_a_runner() -> None:
    figures = (*runner_metrics._NOW, *runner_metrics._TOTALS)
    shown = {field for figure in figures for field in figure.fields.values()}
    assert shown | COUNTED_BY_THE_DAEMON == set(Stats.__struct_fields__)
