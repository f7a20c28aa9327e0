from __future__ import annotations

import threading
import time
from itertools import islice

import pytest

from llmrun.engine import inbox
from llmrun.engine.inbox import Inbox


def test_read_without_waiting_gives_what_is_there_in_order() -> None:
    notes = Inbox()
    assert list(notes.read(wait=False, tidy=lambda: False)) == []
    notes.put("a")
    notes.put(None)
    assert list(notes.read(wait=False, tidy=lambda: False)) == ["a", None]


def test_read_tidies_up_only_once_it_is_calm_and_only_until_all_is_tidy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inbox, "CALM_S", 0.01)
    notes, tidied = Inbox(), [0]

    def tidy() -> bool:
        tidied[0] += 1
        return tidied[0] < 3

    notes.put("at once")
    assert next(notes.read(wait=True, tidy=tidy)) == "at once"
    assert tidied == [0]
    threading.Timer(0.5, notes.put, ["late"]).start()
    began = time.monotonic()
    assert list(islice(notes.read(wait=True, tidy=tidy), 1)) == ["late"]
    assert tidied == [3]
    assert time.monotonic() - began >= 0.4
