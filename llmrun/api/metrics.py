"""What `/metrics` shows, in Prometheus' text form. The daemon's counters and its loaded models are read
when the page is asked for; only times and HTTP responses are gathered here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from llmrun.access.gate import Gate
from llmrun.api.key_metrics import KeyMetrics
from llmrun.api.llama_metrics import LlamaServerMetrics
from llmrun.api.ports import Service
from llmrun.api.runner_metrics import RunnerMetrics
from llmrun.types import Finished

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_SECONDS_PER_TOKEN = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)


class Metrics:
    """One app's numbers, in a registry of their own."""

    def __init__(self, service: Service, gate: Gate) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Daemon(service))
        self._registry.register(KeyMetrics(gate))
        self._registry.register(RunnerMetrics(service))
        self._responses = Counter(
            "llmrun_http_responses", "HTTP responses", ["route", "status"], registry=self._registry
        )
        self._queue = self._histogram("queue", "Arrival to the first computed prompt token", _SECONDS)
        self._ttft = self._histogram("time_to_first_token", "Arrival to the first token", _SECONDS)
        self._itl = self._histogram(
            "inter_token", "Mean time between the tokens of a request", _SECONDS_PER_TOKEN
        )
        self._prefill = self._histogram("prefill", "First computed prompt token to the first token", _SECONDS)
        self._decode = self._histogram("decode", "First token to the last", _SECONDS)
        self._speeds = LlamaServerMetrics(service)
        self._registry.register(self._speeds)
        service.observe(self._ended)

    def responded(self, route: str, status: int) -> None:
        """An HTTP response began. `route` is a route's template, never what a client wrote."""
        self._responses.labels(route, str(status)).inc()

    def _ended(self, model: str, finished: Finished) -> None:
        timings = finished.timings
        self._speeds.ended(finished)
        for histogram, milliseconds in (
            (self._queue, timings.queue_ms),
            (self._prefill, timings.prefill_ms),
            (self._decode, timings.decode_ms),
            (self._ttft, timings.ttft_ms),
            (self._itl, timings.itl_ms),
        ):
            histogram.labels(model).observe(milliseconds / 1000)

    def families(self) -> Iterator[Metric]:
        """Every metric with its name, kind and meaning, and the samples it has now."""
        return iter(self._registry.collect())

    def render(self) -> bytes:
        """The page, in the text format that prometheus_client calls its latest."""
        return generate_latest(self._registry)

    def _histogram(self, name: str, about: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(f"llmrun_{name}_seconds", about, ["model"], buckets=buckets, registry=self._registry)


class _Daemon(Collector):
    """The daemon's counters, which outlive its runners."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        counters = self._service.counters
        requests = CounterMetricFamily(
            "llmrun_requests", "Requests ended, by outcome", labels=["model", "outcome"]
        )
        for (model, outcome), count in counters.requests.items():
            requests.add_metric([model, outcome], count)
        yield requests
        yield _by_model("prompt_tokens", "Prompt tokens", counters.prompt_tokens)
        yield _by_model("cached_tokens", "Prompt tokens not computed again", counters.cached_tokens)
        yield _by_model("completion_tokens", "Tokens made", counters.completion_tokens)
        yield _by_model("loads", "Times a model was loaded", counters.loads)
        yield _by_model("load_failures", "Times a model could not be loaded", counters.load_failures)
        yield _by_model("runner_deaths", "Times a loaded model's process died", counters.deaths)
        waiting = "Requests that wait for a runner to load or to have room"
        yield GaugeMetricFamily("llmrun_waiting", waiting, value=self._service.waiting)


def _by_model(name: str, about: str, counts: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(f"llmrun_{name}", about, labels=["model"])
    for model, count in counts.items():
        family.add_metric([model], count)
    return family
