"""A lease book on the bench: what it does is recorded, and its clock is turned by hand."""

from __future__ import annotations

from typing import Any

from llmrun.daemon.leases import LeaseBook
from llmrun.daemon.room import Room
from llmrun.daemon.wanted import Wanted
from llmrun.errors import RUNNER_DIED, LlmrunError
from tests.daemon.fakes import INFO, wanted

DIED = LlmrunError(RUNNER_DIED, "the engine died (SIGKILL)")


class Recorder:
    def __init__(self) -> None:
        self.done: list[tuple[str, str]] = []
        self.errors: dict[str, LlmrunError] = {}
        self.granted: dict[str, str] = {}
        self.alarm: float | None = None

    def start(self, model: Wanted) -> None:
        self.done.append(("start", model.name))

    def stop(self, name: str, error: LlmrunError) -> None:
        self.done.append(("stop", name))
        self.errors[name] = error

    def grant(self, ticket: str, name: str) -> None:
        self.done.append(("grant", ticket))
        self.granted[ticket] = name

    def refuse(self, ticket: str, error: LlmrunError) -> None:
        self.done.append(("refuse", ticket))
        self.errors[ticket] = error

    def wake_at(self, when: float) -> None:
        self.alarm = when

    def take(self) -> list[tuple[str, str]]:
        """What was done since the last call."""
        done, self.done = self.done, []
        return done


class Bench:
    """A book, its recorder, and a clock to turn."""

    def __init__(self, max_loaded: int | None = 9, available: int = 10**12, **settings: Any) -> None:
        self.now = 1000.0
        self.effects = Recorder()
        values: dict[str, Any] = {"keep_alive": 300.0, "parallel": 1, "queue": 100}
        self.book: LeaseBook[str] = LeaseBook(
            self.effects,
            room=Room(max_loaded, lambda: available),
            clock=lambda: self.now,
            **(values | settings),
        )

    def want(self, ticket: str, name: str = "a", **how: Any) -> None:
        self.now += 1
        self.book.want(ticket, wanted(name, **how))

    def release(self, ticket: str, served: bool = True) -> None:
        self.now += 1
        self.book.release(ticket, served=served)

    def load(self, ticket: str, name: str = "a", **how: Any) -> None:
        """A loaded model with one request on it."""
        self.want(ticket, name, **how)
        self.book.ready(name, INFO)
        assert self.take()[-2:] == [("start", name), ("grant", ticket)]

    def idle(self, name: str = "a") -> None:
        """A loaded model with no request."""
        self.load(f"past {name}", name)
        self.release(f"past {name}")

    def take(self) -> list[tuple[str, str]]:
        return self.effects.take()
