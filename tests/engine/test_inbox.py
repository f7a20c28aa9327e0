from __future__ import annotations

from queue import Empty

import pytest

from llmrun.engine.inbox import CALM_S, Inbox, Note


class Calm:
    """A queue of notes that never come in time, until somebody waits for one without end."""

    def __init__(self, last: Note) -> None:
        self.last = last
        self.waits: list[float | None] = []

    def get(self, timeout: float | None = None) -> Note:
        self.waits.append(timeout)
        if timeout is None:
            return self.last
        raise Empty


def test_read_without_waiting_gives_what_is_there_in_order() -> None:
    notes = Inbox()
    assert list(notes.read(wait=False, tidy_one=lambda: False)) == []
    notes.put("a")
    notes.put(None)
    assert list(notes.read(wait=False, tidy_one=lambda: False)) == ["a", None]


def test_read_of_what_is_there_tidies_nothing() -> None:
    notes, tidied = Inbox(), [0]

    def tidy_one() -> bool:
        tidied[0] += 1
        return True

    notes.put("at once")
    assert list(notes.read(wait=True, tidy_one=tidy_one)) == ["at once"]
    assert tidied == [0]


def test_read_while_nothing_comes_tidies_up_one_by_one_with_calm_in_front_of_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    notes, calm, left = Inbox(), Calm("late"), [True, True, False]
    monkeypatch.setattr(notes, "_notes", calm)
    assert next(notes.read(wait=True, tidy_one=lambda: left.pop(0))) == "late"
    assert calm.waits == [CALM_S, CALM_S, CALM_S, None]
    assert left == []
