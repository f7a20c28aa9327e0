"""How many tokens one step may compute, so that a long prompt does not stall running answers."""

from __future__ import annotations

# A step beside running answers may take this long: their inter-token latency while a prompt arrives.
BUSY_STEP_S = 0.1
# A step without them bounds how long a new or cancelled request waits for its turn.
IDLE_STEP_S = 1.0
LEAST = 16


class PrefillBudget:
    """Learns the cost of a prompt token from the steps it is shown. `most` is the batch's capacity."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._seconds_per_token = 0.0

    def observe(self, tokens: int, seconds: float) -> None:
        """A step of `tokens` rows took so long. Small steps say little about prefill and are ignored."""
        if tokens < LEAST:
            return
        cost = seconds / tokens
        old = self._seconds_per_token
        self._seconds_per_token = cost if not old else 0.7 * old + 0.3 * cost

    def tokens(self, busy: bool) -> int:
        """The budget of the next step; `busy`: answers are being decoded in it."""
        if not self._seconds_per_token:
            return self._most
        affordable = int((BUSY_STEP_S if busy else IDLE_STEP_S) / self._seconds_per_token)
        return max(LEAST, min(self._most, affordable))
