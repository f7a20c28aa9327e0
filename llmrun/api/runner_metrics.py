"""What `/metrics` shows of each loaded model's process: one row below for each number of its `Stats`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from llmrun.api.ports import Service


class _Figure(NamedTuple):
    """The metric `llmrun_model_NAME`: for each value of `label` a field of `Stats`, times `scale`."""

    name: str
    about: str
    fields: dict[str, str]
    label: str = ""
    scale: float = 1.0


def _one(name: str, about: str, field: str = "", scale: float = 1.0) -> _Figure:
    return _Figure(name, about, {"": field or name}, scale=scale)


_NOW = (
    _one("running", "Sequences being computed"),
    _one("waiting", "Sequences that wait inside the runner, swapped ones included"),
    _one("swapped", "Sequences swapped out to host memory for want of cells"),
    _one("kv_total", "Cells of the KV cache; one holds one token"),
    _one("kv_used", "Cells held by running sequences"),
    _one("kv_retained", "Cells kept for later prompts"),
    _Figure(
        "kv_saved_bytes",
        "KV prefixes that left the cells, by where they lie",
        {"ram": "kv_ram_bytes", "disk": "kv_disk_bytes"},
        "tier",
    ),
    _one("threads", "Threads that compute a decoding step"),
    _one("decode_tps", "Tokens made per second of the steps of late, all sequences together"),
    _one("prefill_tps", "Prompt tokens computed per second of the steps of late"),
    _one("batch_occupancy_ratio", "Answers in a decoding step of late, as a share of the most", "occupancy"),
    _Figure(
        "inter_token_seconds",
        "Time between the tokens of an answer, of late",
        {"0.5": "itl_p50_ms", "0.95": "itl_p95_ms", "0.99": "itl_p99_ms"},
        "quantile",
        1e-3,
    ),
    _one(
        "inter_token_longest_seconds", "The longest time between two tokens of an answer", "itl_max_ms", 1e-3
    ),
)
_TOTALS = (
    _Figure(
        "prefix_hits",
        "Prompts that began with a kept prefix, by where it lay",
        {"cells": "hits_cells", "ram": "hits_ram", "disk": "hits_disk"},
        "tier",
    ),
    _one("prefilled_tokens", "Prompt tokens computed, those computed again included", "prefilled"),
    _one("drafted_tokens", "Tokens guessed ahead and computed", "drafted"),
    _one("accepted_tokens", "Of these, tokens that became part of an answer", "accepted"),
    _one("steps", "Engine steps"),
    _one("decode_steps", "Engine steps that brought an answer forward"),
    _one("decode_rows", "Answers in these steps together"),
    _one("busy_seconds", "Time spent in llama.cpp's decode"),
    _one("preemptions", "Sequences swapped out for want of cells"),
    _one("cancelled", "Requests cancelled inside the engine"),
)


class RunnerMetrics(Collector):
    """The latest numbers of each runner. Totals are those since its model was loaded."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        loaded = self._service.loaded()
        in_flight = GaugeMetricFamily("llmrun_model_in_flight", "Requests a model has", labels=["model"])
        for model in loaded:
            in_flight.add_metric([model.name], model.in_flight)
        yield in_flight
        for kind, figures in ((GaugeMetricFamily, _NOW), (CounterMetricFamily, _TOTALS)):
            for figure in figures:
                labels = ["model", figure.label] if figure.label else ["model"]
                family = kind(f"llmrun_model_{figure.name}", figure.about, labels=labels)
                for model in loaded:
                    if model.stats is not None:
                        for value, field in figure.fields.items():
                            where = [model.name, value] if figure.label else [model.name]
                            family.add_metric(where, figure.scale * getattr(model.stats, field))
                yield family
