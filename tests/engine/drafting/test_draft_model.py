"""A small model that guesses for a large one: real kernels, random weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import gguf
import pytest

from llmrun.engine.drafting import DraftModel
from llmrun.llama import Model
from llmrun.types import Finished
from tests.engine.drafting.test_drafting import ticks
from tests.support.events import joined_text
from tests.support.models import running, tiny_context, tiny_model
from tests.support.tiny import Shape

PROMPTS = [[30 + i, *range(60, 70 + 9 * i)] for i in range(4)]
QUANT = gguf.GGMLQuantizationType.Q8_0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def target(folder: Path) -> Iterator[Model]:
    (folder / "target").mkdir()
    loaded = tiny_model(folder / "target", Shape(quant=QUANT, scale=1.5))
    yield loaded
    loaded.close()


def _draft(folder: Path, seed: int) -> Model:
    """With the target's seed it is the target, and always right."""
    place = folder / f"draft{seed}"
    place.mkdir(exist_ok=True)
    return tiny_model(place, Shape(quant=QUANT, scale=1.5, seed=seed))


@pytest.fixture(params=[0, 1], ids=["right", "wrong"])
def draft(request: pytest.FixtureRequest, folder: Path) -> Iterator[Model]:
    loaded = _draft(folder, request.param)
    yield loaded
    loaded.close()


def _drafter(
    draft: Model, ctx: int = 512, slots: int = 4, clock: Callable[[], float] = lambda: 0.0
) -> DraftModel:
    return DraftModel(tiny_context(draft, ctx, slots, batch=512), 266, clock)


def test_answer_alone_is_the_same_with_a_draft_model(target: Model, draft: Model) -> None:
    with running(target) as work:
        plain = work.answer(PROMPTS[0], max_tokens=60)
    with running(target, drafters=(_drafter(draft),), clock=ticks()) as work:
        assert work.answer(PROMPTS[0], max_tokens=60) == plain
        assert work.engine.counters.drafted


def test_a_draft_model_that_is_the_model_is_always_right(target: Model, folder: Path) -> None:
    same = _draft(folder, 0)
    with running(target, drafters=(_drafter(same),), clock=ticks()) as work:
        request = work.submit(PROMPTS[1], max_tokens=60)
        work.wait()
        usage = work.finished(request).usage
        assert usage.accepted > 40
        assert usage.accepted >= 0.9 * usage.drafted  # what came after the end of the answer was for nothing
        assert work.engine.counters.steps == usage.completion - usage.accepted
    same.close()


def test_many_answers_with_few_slots_and_cells_all_end(target: Model, draft: Model) -> None:
    drafter = _drafter(draft, ctx=256, slots=2)
    with running(target, ctx=256, drafters=(drafter,), clock=ticks()) as work:
        requests = [work.submit(prompt, max_tokens=120, n=2) for prompt in PROMPTS]
        work.wait(len(requests))
        assert all(isinstance(work.events[request][-1], Finished) for request in requests)
        assert work.engine.counters.drafted
    assert len(drafter._free) == 2
    assert not drafter._followed


def test_a_prompt_that_is_new_is_read_in_parts_before_it_is_guessed_on(target: Model, folder: Path) -> None:
    same = _draft(folder, 0)
    prompt = [30 + i % 200 for i in range(600)]
    drafter = _drafter(same, ctx=1024)
    with running(target, ctx=1024, drafters=(drafter,), clock=ticks()) as work:
        text = work.answer(prompt, max_tokens=30)
        assert 10 < work.engine.counters.accepted < 28
    with running(target, ctx=1024) as work:
        assert work.answer(prompt, max_tokens=30) == text
    same.close()


def test_a_draft_model_that_costs_more_than_it_saves_rests(target: Model, folder: Path) -> None:
    wrong = _draft(folder, 1)
    drafter = _drafter(wrong, clock=ticks())  # each of its steps takes as long as one of the target's
    with running(target, drafters=(drafter,), clock=ticks()) as work:
        work.answer(PROMPTS[0], max_tokens=200)
        assert work.engine.counters.drafted < 60
    wrong.close()


def test_guesses_for_two_answers_do_not_mix(target: Model, folder: Path) -> None:
    same = _draft(folder, 0)
    with running(target) as work:
        alone = [work.answer(prompt, max_tokens=24) for prompt in PROMPTS[:2]]
    with running(target, drafters=(_drafter(same),), clock=ticks()) as work:
        requests = [work.submit(prompt, max_tokens=24) for prompt in PROMPTS[:2]]
        work.wait(2)
        texts = [joined_text(work.events[request]) for request in requests]
        assert [text[:8] for text in texts] == [text[:8] for text in alone]
        assert work.engine.counters.accepted > 0.6 * work.engine.counters.drafted
    same.close()
