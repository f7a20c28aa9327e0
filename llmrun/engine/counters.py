"""Totals of one engine. Changed by its thread, read by others: each number alone is never torn."""

from __future__ import annotations

from dataclasses import dataclass, field

from llmrun.engine.latency import Latencies

_RECENT = 8192
"""Times between tokens that percentiles follow."""


@dataclass
class Counters:
    """Since the engine began.

    prompt_tokens  of prompts that were begun, `cached_tokens` of them not computed
    prefilled      prompt tokens computed, those computed again included
    decode_steps   steps that brought an answer forward, `decode_rows` answers in them together
    busy_seconds   in llama.cpp's decode
    cancelled      requests
    itl            seconds between a sequence's tokens, of requests that ended
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    prefilled: int = 0
    drafted: int = 0
    accepted: int = 0
    steps: int = 0
    decode_steps: int = 0
    decode_rows: int = 0
    busy_seconds: float = 0.0
    cancelled: int = 0
    itl: Latencies = field(default_factory=lambda: Latencies(_RECENT))

    def stepped(self, prefilled: int, advanced: int, seconds: float) -> None:
        """A step computed `prefilled` prompt tokens, sampled for `advanced` answers, and took so long."""
        self.steps += 1
        self.prefilled += prefilled
        self.busy_seconds += seconds
        if advanced:
            self.decode_steps += 1
            self.decode_rows += advanced
