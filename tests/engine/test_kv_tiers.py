"""Prefixes that leave the KV cache and come back, with a real context: same text, fewer tokens computed."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmrun.engine import SavedPrefixes
from llmrun.engine.disk_prefixes import DiskPrefixes
from llmrun.llama import Model
from tests.support.events import joined_text
from tests.support.models import Running, running

PROMPT = [20 + n % 7 * n % 90 for n in range(200)]
OTHERS = [[9 + seed + n * seed % 100 for n in range(300)] for seed in (3, 5, 7)]


def asked(work: Running, prompt: list[int]) -> tuple[str, int]:
    """The answer's text, and how many of the prompt's tokens were not computed."""
    request_id = work.submit(prompt)
    work.wait()
    return joined_text(work.events[request_id]), work.finished(request_id).usage.cached


@pytest.fixture(scope="module")
def plain(model: Model) -> str:
    """What the model says to PROMPT with nothing cached."""
    with running(model) as work:
        return work.answer(PROMPT)


@pytest.mark.parametrize("on_disk", [False, True])
def test_answer_from_an_evicted_prefix_is_the_same_and_counts_as_asked(
    model: Model, plain: str, tmp_path: Path, on_disk: bool
) -> None:
    saved = SavedPrefixes(
        0 if on_disk else 1 << 30, DiskPrefixes(tmp_path, "k", 1 << 30) if on_disk else None
    )
    with running(model, saved=saved) as work:
        work.answer(PROMPT)
        for other in OTHERS:
            work.answer(other)
        again = asked(work, PROMPT)
    assert again == (plain, len(PROMPT) - 1)
    assert (saved.ram_hits, saved.disk_hits) == ((0, 1) if on_disk else (1, 0))


def test_answer_after_a_restart_comes_from_disk(model: Model, plain: str, tmp_path: Path) -> None:
    for expected in (0, len(PROMPT) - 1):
        disk = DiskPrefixes(tmp_path, "k", 1 << 30)
        disk.ready.wait(10)
        with running(model, saved=SavedPrefixes(1 << 30, disk)) as work:
            assert asked(work, PROMPT) == (plain, expected)


def test_idle_engine_puts_what_is_retained_on_disk(model: Model, tmp_path: Path) -> None:
    disk = DiskPrefixes(tmp_path, "k", 1 << 30)
    with running(model, saved=SavedPrefixes(0, disk)) as work:
        work.answer(PROMPT)
        for _ in range(200):
            if list(tmp_path.glob("*/*.kv")):
                break
            disk.ready.wait(10)
            work.thread.join(0.05)
        assert list(tmp_path.glob("*/*.kv")), "nothing was written while the engine was idle"
