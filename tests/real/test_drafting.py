"""Drafting on the real model: the same text in fewer steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from time import monotonic

import pytest

from llmrun.engine.drafting import Ngrams
from llmrun.llama import Model
from llmrun.types import SamplingParams
from tests.real.test_oracle import PROMPTS
from tests.support.events import joined_text
from tests.support.models import GREEDY, Running, tiny_context

pytestmark = pytest.mark.real

COPIED = """The inventory of the old lighthouse, written down in the spring of 1911:
seven brass lamps, four of them dented; one barometer by Negretti & Zambra; thirty-two fathoms of rope;
a chest with the keeper's papers; two stuffed gulls; and a clock that had not been wound for nine years."""
COPY = (
    "<|im_start|>user\nCopy this text word for word.\n\n"
    f"{COPIED}<|im_end|>\n<|im_start|>assistant\nThe inventory of the old lighthouse,"
)
WARM = SamplingParams(temperature=0.7)


@pytest.fixture(scope="module")
def model(model_path: Path) -> Iterator[Model]:
    loaded = Model(model_path)
    yield loaded
    loaded.close()


def _answers(  # type: ignore[no-untyped-def]
    model: Model,
    drafters: tuple[Ngrams, ...],
    params: SamplingParams,
    prompts: list[str],
    clock: Callable[[], float] = monotonic,
):
    """What each prompt alone is answered, each in a context of its own, and the engine's counters."""
    texts, steps, drafted, accepted = [], 0, 0, 0
    for prompt in prompts:
        context = tiny_context(model, ctx=512, slots=2, batch=512)
        work = Running(context, parallel=1, batch=512, drafters=drafters, clock=clock)
        try:
            request = work.submit(model.vocab.tokenize(prompt, special=True), params=params, max_tokens=64)
            work.wait()
            texts.append((joined_text(work.events[request]), work.stopped(request)))
            counters = work.engine.counters
            steps += counters.steps
            drafted += counters.drafted
            accepted += counters.accepted
        finally:
            work.engine.stop()
            work.thread.join()
            context.close()
    return texts, steps, drafted, accepted


@pytest.mark.timeout(900)
@pytest.mark.parametrize("params", [GREEDY, WARM], ids=["greedy", "seeded"])
def test_text_and_finish_of_twenty_prompts_are_the_same_with_drafting(
    model: Model, params: SamplingParams
) -> None:
    # With fewer than 512 cells and one thread llama.cpp's sums have one order, whatever the rows of a step.
    plain, _, none, _ = _answers(model, (), params, PROMPTS)
    drafted, _, some, _ = _answers(model, (Ngrams(512),), params, PROMPTS)
    assert none == 0 < some
    assert drafted == plain


@pytest.mark.timeout(300)
def test_copied_text_takes_few_steps_and_is_the_same(model: Model) -> None:
    plain, steps, _, _ = _answers(model, (), GREEDY, [COPY])
    # Guesses are worth what their rows cost on this machine. Here every step costs the same.
    drafted, fewer, _, accepted = _answers(model, (Ngrams(512),), GREEDY, [COPY], count().__next__)
    assert drafted == plain
    assert fewer == steps - accepted < 0.6 * steps
