"""How many tokens one step may compute, so that a long prompt does not stall running answers."""

from __future__ import annotations

from collections.abc import Sequence

# A step beside running answers may take this long, or twice what the answers alone take, where that is
# longer: their inter-token latency while a prompt arrives.
BUSY_STEP_S = 0.1
# A step without them bounds how long a new or cancelled request waits for its turn.
IDLE_STEP_S = 1.0
LEAST = 16


class PrefillBudget:
    """Learns the cost of a prompt token from the steps it is shown. `most` is the batch's capacity."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._seconds_per_token = 0.0

    def observe(self, tokens: int, seconds: float, answers: float = 0.0) -> None:
        """A step of `tokens` rows took so long, of which the answers in it, alone, would take `answers`.
        Small steps say little about prefill and are ignored."""
        if tokens < LEAST:
            return
        cost = max(seconds - answers, 0.1 * seconds) / tokens
        old = self._seconds_per_token
        self._seconds_per_token = cost if not old else 0.7 * old + 0.3 * cost

    def tokens(self, busy: bool, answers: float = 0.0) -> int:
        """The budget of the next step; `busy`: answers are being decoded in it, which alone takes `answers`
        seconds."""
        if not self._seconds_per_token:
            return self._most
        seconds = max(BUSY_STEP_S - answers, answers) if busy else IDLE_STEP_S
        affordable = int(seconds / self._seconds_per_token)
        return max(LEAST, min(self._most, affordable))


def shares(pending: Sequence[int], tokens: int) -> list[int]:
    """How many of a step's prefill tokens each prompt gets; `pending`: what they need, oldest first.

    Half is the oldest's, so that no prompt waits for ever; the rest goes to the shortest first, so that a
    short one does not wait for a long one.
    """
    given = [0] * len(pending)
    if not pending or tokens <= 0:
        return given
    given[0] = min(pending[0], -(-tokens // 2))
    left = tokens - given[0]
    for place in sorted(range(len(pending)), key=pending.__getitem__):
        more = min(pending[place] - given[place], left)
        given[place] += more
        left -= more
    return given


def scored_shares(prompts: Sequence[tuple[int, bool]], tokens: int, scored_rows: int) -> list[int]:
    """`shares` for prompts of so many pending tokens, some of which are scored: these get `scored_rows`
    tokens together, oldest first."""
    given = shares([min(n, scored_rows) if scored else n for n, scored in prompts], tokens)
    left = scored_rows
    for place, (_, scored) in enumerate(prompts):
        if scored:
            given[place] = min(given[place], left)
            left -= given[place]
    return given
