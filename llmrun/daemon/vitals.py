"""Whether a loaded runner that has work is alive, by what it says and when. Pure; every moment is given.

Two ways to be stuck. It is silent: it is asked for a sign of life, which a thread of its own gives whatever
the engine computes, and gives none. It goes nowhere: it answers, but no step ends and no event comes, for so
long that no step takes. A runner without work is not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

SLACK = 5.0
"""Seconds that a look may come late. Later than that, it was us who slept (a stopped daemon, a machine that
was suspended): the runner gets all its time anew."""


@dataclass(frozen=True)
class Bounds:
    """Seconds. `quiet`: without a frame, before it is asked. `silence`: for an answer to that. `standstill`:
    without progress; a step of a large model on a slow machine takes minutes."""

    quiet: float = 5.0
    silence: float = 30.0
    standstill: float = 1800.0


class Look(NamedTuple):
    """What to do now: end it for being `stuck`, or else `ask` it, and look again after `wait` seconds."""

    stuck: str | None
    ask: bool
    wait: float


class Vitals:
    """Of one runner, from `begin`, when it gets work, until it has none."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self.begin(0.0)

    def begin(self, now: float) -> None:
        """It had no work, and has some now."""
        self._heard = self._moved = self._due = now
        self._asked: float | None = None

    def heard(self, now: float, *, moved: bool) -> None:
        """It said something; `moved`: what shows that it gets on with its work."""
        self._heard = now
        self._asked = None
        if moved:
            self._moved = now

    def look(self, now: float) -> Look:
        """The verdict at this moment."""
        if now > self._due + SLACK:
            self.begin(now)
        if now - self._moved >= self._bounds.standstill:
            return Look(f"it made no progress for {self._bounds.standstill:g} s", False, 0.0)
        ask = False
        if self._asked is None:
            if now - self._heard >= self._bounds.quiet:
                ask, self._asked = True, now
        elif now - self._asked >= self._bounds.silence:
            return Look(f"it gave no sign of life for {now - self._heard:.0f} s", False, 0.0)
        answer = (
            self._heard + self._bounds.quiet if self._asked is None else self._asked + self._bounds.silence
        )
        wait = max(0.05, min(answer, self._moved + self._bounds.standstill) - now)
        self._due = now + wait
        return Look(None, ask, wait)
