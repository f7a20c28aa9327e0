"""llama-server's own numbers on `/metrics`, over all models: what dashboards made for it ask for.

https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md ("Available metrics")
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from llmrun.api.ports import Service
from llmrun.types import Finished


class LlamaServerMetrics(Collector):
    """Counts generations as they end; what runs now is read when the page is asked for."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._prompt_tokens = self._predicted_tokens = 0
        self._prompt_seconds = self._predicted_seconds = 0.0

    def ended(self, finished: Finished) -> None:
        """A generation ended well."""
        usage, timings = finished.usage, finished.timings
        self._prompt_tokens += usage.prompt - usage.cached
        self._prompt_seconds += timings.prefill_ms / 1e3
        self._predicted_tokens += usage.completion
        self._predicted_seconds += timings.decode_ms / 1e3

    def collect(self) -> Iterator[Metric]:
        stats = [model.stats for model in self._service.loaded() if model.stats]
        counters = {
            "prompt_tokens": ("Prompt tokens computed", self._prompt_tokens),
            "prompt_seconds": ("Seconds of computing prompts", self._prompt_seconds),
            "tokens_predicted": ("Tokens made", self._predicted_tokens),
            "tokens_predicted_seconds": ("Seconds of making tokens", self._predicted_seconds),
            "n_decode": ("Engine steps of the models in memory", sum(each.steps for each in stats)),
        }
        gauges = {
            "prompt_tokens_seconds": (
                "Prompt tokens a second, on the whole",
                _each(self._prompt_tokens, self._prompt_seconds),
            ),
            "predicted_tokens_seconds": (
                "Tokens made a second, on the whole",
                _each(self._predicted_tokens, self._predicted_seconds),
            ),
            "requests_processing": ("Sequences being computed", sum(each.running for each in stats)),
            "requests_deferred": (
                "Requests that wait",
                self._service.waiting + sum(each.waiting for each in stats),
            ),
        }
        for name, (about, value) in counters.items():
            yield CounterMetricFamily(f"llamacpp:{name}", about, value=value)
        for name, (about, value) in gauges.items():
            yield GaugeMetricFamily(f"llamacpp:{name}", about, value=value)


def _each(total: float, seconds: float) -> float:
    return total / seconds if seconds else 0.0
