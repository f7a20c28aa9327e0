"""A KV cache for each sequence, and attention in more than one pass: the same texts as in any layout."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from llmrun.engine import SavedPrefixes
from llmrun.engine.disk_prefixes import DiskPrefixes
from llmrun.engine.drafting import Ngrams
from llmrun.llama import Model
from tests.support.likeness import Chosen, chosen, same, say
from tests.support.models import running

LAYOUTS = [
    pytest.param({"unified": False, "slots": 4}, id="separate"),
    pytest.param({"flash_attention": False}, id="without flash attention"),
    pytest.param({"unified": False, "slots": 4, "flash_attention": False}, id="both"),
]
COMMON = [20 + n % 7 * n % 90 for n in range(60)]


def prompt(seed: int, length: int) -> list[int]:
    rng = random.Random(seed)
    return [rng.randrange(10, 260) for _ in range(length)]


PROMPTS = [prompt(1, 5), prompt(2, 90), COMMON + prompt(3, 9), COMMON + prompt(4, 30), COMMON, prompt(5, 200)]


@pytest.fixture(scope="module")
def alone(model: Model) -> list[Chosen]:
    """What the model says to each prompt by itself, in the usual layout."""
    with running(model) as work:
        return say(work, *PROMPTS)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_answers_together_and_from_shared_prefixes_say_what_each_says_alone(
    model: Model, alone: list[Chosen], layout: dict[str, bool]
) -> None:
    with running(model, parallel=4, **layout) as work:
        assert same(alone, say(work, *PROMPTS, together=True))
        assert work.engine.scheduler.shared
        assert same(alone, say(work, *PROMPTS, together=True))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_answers_with_guesses_say_the_same(
    model: Model, alone: list[Chosen], layout: dict[str, bool]
) -> None:
    with running(model, parallel=4, drafters=(Ngrams(512),), **layout) as work:
        assert same(alone, say(work, *PROMPTS, together=True))


def test_prefix_from_disk_comes_back_into_any_slot(model: Model, alone: list[Chosen], tmp_path: Path) -> None:
    layout = {"unified": False, "slots": 2, "parallel": 2}
    with running(model, saved=SavedPrefixes(0, DiskPrefixes(tmp_path, "k", 1 << 30)), **layout) as work:  # type: ignore[arg-type]
        work.answer(PROMPTS[5])
    disk = DiskPrefixes(tmp_path, "k", 1 << 30)
    disk.ready.wait(10)
    with running(model, saved=SavedPrefixes(0, disk), **layout) as work:  # type: ignore[arg-type]
        work.submit(PROMPTS[1])
        again = work.submit(PROMPTS[5], logprobs=3)
        work.wait(2)
        assert work.finished(again).usage.cached == len(PROMPTS[5]) - 1
        assert same([alone[5]], [chosen(work, again)])


def test_answer_ends_with_its_own_cells_however_many_others_have(model: Model) -> None:
    with running(model, ctx=256, unified=False, slots=2, parallel=2) as work:
        asked = [work.submit(prompt(seed, 200), max_tokens=None) for seed in (6, 7, 8)]
        work.wait(3)
        assert [work.stopped(one).reason for one in asked] == ["length"] * 3
        assert work.engine.scheduler.preemptions == 0
