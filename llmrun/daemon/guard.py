"""Keeps a model that dies on every start from being started in a hot loop.

In: failures, and requests that went well. Out: the error for a request that comes too early. Knows no
processes and has no clock of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from llmrun.daemon.wanted import Wanted
from llmrun.errors import LlmrunError

MAX_DELAY = 60.0


def delay_after(failures: int) -> float:
    """Seconds without a new start after `failures` in a row: 0, 1, 2, 4, … and at most a minute.

    The first costs nothing, so that a runner killed once serves the very next request.
    """
    return 0.0 if failures <= 1 else min(MAX_DELAY, 2.0 ** (failures - 2))


@dataclass(frozen=True)
class _Record:
    wanted: Wanted
    failures: int
    last: LlmrunError
    until: float


class CrashGuard:
    """What went wrong per model name. A model asked for in another way starts with a clean record."""

    def __init__(self) -> None:
        self._records: dict[str, _Record] = {}

    def failed(self, wanted: Wanted, error: LlmrunError, now: float) -> None:
        """A runner of `wanted` could not load or died unasked, for the reason `error`."""
        record = self._records.get(wanted.name)
        failures = 1 + (record.failures if record and record.wanted == wanted else 0)
        self._records[wanted.name] = _Record(wanted, failures, error, now + delay_after(failures))

    def served(self, name: str) -> None:
        """A runner of `name` finished a request: whatever was wrong is over."""
        self._records.pop(name, None)

    def refusal(self, wanted: Wanted, now: float) -> LlmrunError | None:
        """The last reason, with the seconds left in `retry_after`; None where a start may be tried."""
        record = self._records.get(wanted.name)
        if record is None or record.wanted != wanted or now >= record.until:
            return None
        seconds = math.ceil(record.until - now)
        last = record.last
        return LlmrunError(
            last.kind,
            f"{last.message}; after {record.failures} failures in a row "
            f"it is tried again in {seconds} s at the earliest",
            hint=last.hint,
            **{**last.details, "retry_after": seconds},
        )
