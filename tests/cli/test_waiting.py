from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, cast

import pytest

from llmrun.cli import waiting
from llmrun.cli.waiting import Elapsed, doing, waiting_for
from llmrun.client.client import Client
from llmrun.client.wire import LoadedModel
from llmrun.types import Stats
from tests.cli.test_output import outputs

LOADING = LoadedModel(name="big:7b", state="loading", progress=0.42)


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (LoadedModel(name="big:7b", state="loading"), "loading big:7b"),
        (LOADING, "loading big:7b: 42%"),
        (LoadedModel(name="big:7b", state="loading", progress=1.0), "warming up big:7b"),
        (LoadedModel(name="big:7b", state="ready"), "waiting for big:7b"),
        (
            LoadedModel(name="big:7b", state="ready", stats=Stats(running=4, waiting=2)),
            "waiting for big:7b: it is answering 4, and 2 wait",
        ),
    ],
)
def test_doing_says_what_a_model_is_busy_with(model: LoadedModel, text: str) -> None:
    assert doing(model) == text


def test_elapsed_counts_seconds_once_they_are_some() -> None:
    times = iter([10.0, 11.9, 12.1])
    shown = Elapsed("loading [x]", lambda: next(times))
    assert shown.__rich__().plain == "loading [x]"
    assert shown.__rich__().plain == "loading [x] (2 s)"


class Loads:
    """A daemon that is asked what it has in memory."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.answers: Iterator[float] = iter([0.1, 0.42])

    def loaded(self) -> list[LoadedModel]:
        progress = next(self.answers, None)
        if progress is None:
            self.asked.set()
        return [LoadedModel(name="big:7b", state="loading", progress=progress or 0.42)]


def test_waiting_for_a_model_that_loads_shows_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_SOON", 0.0)
    monkeypatch.setattr(waiting, "_AGAIN", 0.01)
    output, out, err = outputs(terminal=True)
    daemon: Any = Loads()
    with waiting_for(output, cast(Client, daemon), "big:7b"):
        assert daemon.asked.wait(10)
    assert "loading big:7b: 42%" in err.getvalue()
    assert out.getvalue() == ""


def test_waiting_where_nobody_watches_asks_nothing() -> None:
    output, _, err = outputs(terminal=False)
    with waiting_for(output, cast(Client, None), "big:7b"):
        pass
    assert err.getvalue() == ""
