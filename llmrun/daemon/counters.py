"""Numbers since the daemon's start, for /metrics. Counted here, shown elsewhere."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from llmrun.types import Usage

OK = "ok"


@dataclass
class Counters:
    """Grow only. Keyed by model name; a name that is no model's counts under the empty name, so that
    a stranger cannot add names without end.

    requests       by (model, outcome); the outcome is `ok` or the code of the error
    loads          runners that became ready
    load_failures  runners that ended before that, unasked
    deaths         runners that ended after that, unasked
    """

    requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    prompt_tokens: Counter[str] = field(default_factory=Counter)
    cached_tokens: Counter[str] = field(default_factory=Counter)
    completion_tokens: Counter[str] = field(default_factory=Counter)
    loads: Counter[str] = field(default_factory=Counter)
    load_failures: Counter[str] = field(default_factory=Counter)
    deaths: Counter[str] = field(default_factory=Counter)

    def add_usage(self, model: str, usage: Usage) -> None:
        self.prompt_tokens[model] += usage.prompt
        self.cached_tokens[model] += usage.cached
        self.completion_tokens[model] += usage.completion
