from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from llmrun.daemon.pool import LoadedModel
from llmrun.runner.frames import ModelInfo
from llmrun.types import Stats
from tests.api.scripted import MODEL, ScriptedService
from tests.support.frames import model_info, stats

INFO = model_info(ctx=2048, size=4_000, kv_bytes=512)
STATS = stats(running=2, waiting=1, kv_used=300, kv_retained=200, kv_total=2048, decode_tps=99.5)


def running(info: ModelInfo | None = INFO, stats: Stats | None = STATS) -> LoadedModel:
    return LoadedModel(
        name=MODEL,
        state="ready" if info else "loading",
        progress=1.0,
        info=info,
        stats=stats,
        pid=4711,
        since=1_700_000_000.0,
        expires_at=None,
        in_flight=3,
    )


def test_health_is_ok(http: TestClient) -> None:
    assert http.get("/health").json() == {"status": "ok"}


def test_ps_lists_loaded_models_whole(http: TestClient, service: ScriptedService) -> None:
    service.running = [running()]
    (listed,) = http.get("/llmrun/ps").json()
    assert listed["name"] == MODEL
    assert listed["info"]["ctx"] == 2048
    assert listed["stats"]["running"] == 2
    assert (listed["state"], listed["pid"], listed["in_flight"], listed["expires_at"]) == (
        "ready",
        4711,
        3,
        None,
    )


@pytest.mark.parametrize(("body", "asked"), [({"model": MODEL}, MODEL), ({"model": None}, None), ({}, None)])
def test_stop_names_what_was_unloaded(
    http: TestClient, service: ScriptedService, body: dict[str, str | None], asked: str | None
) -> None:
    service.running = [running()]
    response = http.post("/llmrun/stop", json=body)
    assert response.json() == [MODEL]
    assert service.stopped == [asked]


def test_shutdown_answers_and_asks_the_daemon_to_end(http: TestClient, shutdowns: list[str]) -> None:
    assert http.post("/llmrun/shutdown", json={}).json() == {"status": "shutting down"}
    assert shutdowns == ["asked"]


@pytest.mark.parametrize("path", ["/llmrun/stop", "/llmrun/shutdown"])
def test_control_cannot_be_reached_by_another_sites_form(
    http: TestClient, service: ScriptedService, shutdowns: list[str], path: str
) -> None:
    assert http.post(path, content=b"{}", headers={"content-type": "text/plain"}).status_code == 415
    assert (service.stopped, shutdowns) == ([], [])


def test_metrics_show_requests_models_and_times(http: TestClient, service: ScriptedService) -> None:
    service.running = [running(), running(info=None, stats=None)]
    service.waiting = 4
    service.counters.requests[MODEL, "ok"] += 2
    service.counters.deaths[MODEL] += 1
    asked = {"model": MODEL, "messages": [{"role": "user", "content": "Hi"}]}
    assert http.post("/v1/chat/completions", json=asked).status_code == 200
    http.get("/no/such/route")
    response = http.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=")
    lines = response.text.splitlines()
    assert f'llmrun_requests_total{{model="{MODEL}",outcome="ok"}} 2.0' in lines
    assert f'llmrun_runner_deaths_total{{model="{MODEL}"}} 1.0' in lines
    assert f'llmrun_model_kv_used{{model="{MODEL}"}} 300.0' in lines
    assert "llmrun_waiting 4.0" in lines
    assert f'llmrun_time_to_first_token_seconds_count{{model="{MODEL}"}} 1.0' in lines
    assert f'llmrun_time_to_first_token_seconds_bucket{{le="0.025",model="{MODEL}"}} 1.0' in lines
    assert 'llmrun_http_responses_total{route="/v1/chat/completions",status="200"} 1.0' in lines
    assert 'llmrun_http_responses_total{route="unknown",status="404"} 1.0' in lines


def test_metrics_every_line_belongs_to_a_described_family(http: TestClient, service: ScriptedService) -> None:
    from prometheus_client.parser import text_string_to_metric_families

    service.running = [running()]
    families = list(text_string_to_metric_families(http.get("/metrics").text))
    assert all(family.documentation for family in families)
    assert len({family.name for family in families}) == len(families)


def test_docs_ask_nothing_of_other_sites(http: TestClient) -> None:
    response = http.get("/docs")
    assert response.headers["content-security-policy"].startswith("default-src 'none'")
    assert not any(mark in response.text for mark in ("http:", "https:", "src=", "<script", "<link"))
    assert "POST /v1/chat/completions" in response.text
    assert "messages.N.content" in response.text


def test_openapi_every_reference_leads_somewhere(http: TestClient) -> None:
    description = http.get("/openapi.json")
    schemas = description.json()["components"]["schemas"]
    for part in description.text.split('"#/components/schemas/')[1:]:
        assert part.partition('"')[0] in schemas
    assert schemas["ChatBody"]["properties"]["audio"]["description"] == "Refused: audio output."
