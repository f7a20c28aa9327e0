from __future__ import annotations

from starlette.testclient import TestClient

from llmrun.types import Finished, Timings, Usage
from tests.api.scripted import MODEL, ScriptedService
from tests.api.test_control import running

TOOK = Timings(queue_ms=1.0, prefill_ms=500.0, decode_ms=2000.0, ttft_ms=501.0, itl_ms=15.0)


def numbers(http: TestClient) -> dict[str, float]:
    lines = http.get("/metrics").text.splitlines()
    return {
        name: float(value) for name, value in (line.split() for line in lines if line.startswith("llamacpp:"))
    }


def test_metrics_have_llama_servers_names(http: TestClient, service: ScriptedService) -> None:
    service.running, service.waiting = [running()], 4
    for observer in service.observers:
        observer(MODEL, Finished(Usage(prompt=30, completion=20, cached=10), TOOK))
        observer(MODEL, Finished(Usage(prompt=30, completion=20), TOOK))
    assert numbers(http) == {
        "llamacpp:prompt_tokens_total": 50.0,
        "llamacpp:prompt_seconds_total": 1.0,
        "llamacpp:tokens_predicted_total": 40.0,
        "llamacpp:tokens_predicted_seconds_total": 4.0,
        "llamacpp:n_decode_total": 0.0,
        "llamacpp:prompt_tokens_seconds": 50.0,
        "llamacpp:predicted_tokens_seconds": 10.0,
        "llamacpp:requests_processing": 2.0,
        "llamacpp:requests_deferred": 5.0,
    }


def test_metrics_before_any_request_are_nothing(http: TestClient) -> None:
    assert set(numbers(http).values()) == {0.0}
