"""What `/metrics` shows of the API keys, by name: what each used, and how often it was refused."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from llmrun.access.gate import Gate

_USED = {
    "requests": "Requests with an API key",
    "prompt_tokens": "Prompt tokens of an API key",
    "completion_tokens": "Tokens made for an API key",
}


class KeyMetrics(Collector):
    """Read when the page is asked for; counted since a key was created, not since the daemon began."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def collect(self) -> Iterator[Metric]:
        keys = [(key.name, self._gate.used(key)) for key in self._gate.entries()]
        for name, about in _USED.items():
            family = CounterMetricFamily(f"llmrun_key_{name}", about, labels=["key"])
            for key, used in keys:
                family.add_metric([key], getattr(used, name))
            yield family
        refused = CounterMetricFamily(
            "llmrun_key_refused", "Requests refused for a key's limits", labels=["key", "reason"]
        )
        for (key, reason), count in self._gate.refused.items():
            refused.add_metric([key, reason], count)
        yield refused
