"""LoRA adapters in the engine, on a tiny random model with tiny random adapters. The oracle is
llama_cpp.Llama with the same files."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from llmrun.engine.request import Adapters
from llmrun.llama import Adapter, Model
from llmrun.types import Failed
from tests.support.events import joined_text
from tests.support.likeness import Chosen, chosen, same, say
from tests.support.models import running
from tests.support.tiny import write_llama, write_lora

PROMPTS = [[random.Random(seed).randrange(10, 260) for _ in range(9 + 5 * seed)] for seed in range(4)]
NONE, FIRST, SECOND, BOTH, HALF = (0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.5, 0.0)
SETS = [NONE, FIRST, SECOND, BOTH, HALF]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("adapted")
    write_llama(folder / "tiny.gguf")
    write_lora(folder / "first.gguf", seed=1)
    write_lora(folder / "second.gguf", seed=2)
    return folder


@pytest.fixture(scope="module")
def adapted(folder: Path) -> Iterator[tuple[Model, list[Adapter]]]:
    model = Model(folder / "tiny.gguf")
    yield model, [Adapter(model, folder / f"{name}.gguf") for name in ("first", "second")]
    model.close()


Said = dict[tuple[Adapters, int], Chosen]


@pytest.fixture(scope="module")
def alone(adapted: tuple[Model, list[Adapter]]) -> Said:
    """What each prompt is answered under each set, computed with nothing else there."""
    model, adapters = adapted
    said = {}
    for one in SETS:
        for number, prompt in enumerate(PROMPTS):
            with running(model, adapters=adapters) as work:
                (said[one, number],) = say(work, prompt, adapters=one)
    return said


def test_engine_sets_of_adapters_say_different_things(alone: Said) -> None:
    assert len({tuple(token.id for token in alone[chosen, 0]) for chosen in SETS}) == len(SETS)


@pytest.mark.parametrize(("chosen", "scale"), [(FIRST, 1.0), (HALF, 0.5)])
def test_engine_tokens_with_an_adapter_equal_llama_cpp_python(
    folder: Path, alone: Said, chosen: Adapters, scale: float
) -> None:
    import llama_cpp

    oracle = llama_cpp.Llama(
        str(folder / "tiny.gguf"),
        lora_path=str(folder / "first.gguf"),
        lora_scale=scale,
        n_ctx=512,
        n_threads=1,
        flash_attn=True,
        verbose=False,
    )
    for number, prompt in enumerate(PROMPTS):
        oracle.reset()
        expected = [token.id for token in alone[chosen, number]]
        made = oracle.generate(prompt, temp=0, repeat_penalty=1.0)
        assert list(itertools.islice(made, len(expected))) == expected
    oracle.close()


def test_engine_sets_together_say_what_each_says_alone(
    adapted: tuple[Model, list[Adapter]], alone: Said
) -> None:
    model, adapters = adapted
    wanted = [(chosen, number) for number in range(len(PROMPTS)) for chosen in SETS]
    with running(model, adapters=adapters, parallel=6, slots=14) as work:
        asked = [work.submit(PROMPTS[number], adapters=one, logprobs=3) for one, number in wanted]
        work.wait(len(asked))
        said = [chosen(work, request) for request in asked]
    assert same([alone[key] for key in wanted], said)


def test_engine_prefix_computed_with_other_adapters_is_not_taken(
    adapted: tuple[Model, list[Adapter]], alone: Said
) -> None:
    model, adapters = adapted
    prompt = PROMPTS[3]
    with running(model, adapters=adapters) as work:
        for one, cached in ((FIRST, 0), (SECOND, 0), (NONE, 0), (FIRST, len(prompt) - 1), (HALF, 0)):
            request = work.submit(prompt, adapters=one, logprobs=3)
            work.wait()
            assert work.finished(request).usage.cached == cached, one
            assert same([alone[one, 3]], [chosen(work, request)])


def test_engine_sets_that_swap_each_other_out_say_the_same(
    adapted: tuple[Model, list[Adapter]], alone: Said
) -> None:
    model, adapters = adapted
    with running(model, adapters=adapters, ctx=256, parallel=5, slots=10) as work:
        asked = [work.submit(PROMPTS[3], adapters=one, max_tokens=200, logprobs=3) for one in SETS]
        work.wait(len(asked))
        assert work.engine.scheduler.preemptions
        said = [chosen(work, request)[: len(alone[one, 3])] for one, request in zip(SETS, asked, strict=True)]
    assert same([alone[one, 3] for one in SETS], said)


LONG = [random.Random(9).randrange(10, 260) for _ in range(200)]


@pytest.mark.parametrize(
    ("unified", "flash_attention"), [(True, None), (True, False), (False, None), (False, True)]
)
def test_engine_adapter_that_overflows_fails_its_request_and_harms_no_other(
    adapted: tuple[Model, list[Adapter]], unified: bool, flash_attention: bool | None
) -> None:
    """NaN in cells that nothing looks at any more would be in the sums of whoever shares the cache."""
    model, adapters = adapted
    layout = {"unified": unified, "flash_attention": flash_attention, "batch": 256}
    with running(model, adapters=adapters, **layout) as work:  # type: ignore[arg-type]
        expected = [work.answer(prompt, adapters=FIRST) for prompt in (LONG, PROMPTS[1])]
    with running(model, adapters=adapters, **layout) as work:  # type: ignore[arg-type]
        beside = work.submit(PROMPTS[1], adapters=FIRST)
        bad = [work.submit(prompt, adapters=(1e30, 0.0), n=2) for prompt in (LONG[:60], LONG[:7])]
        scored = work.submit(LONG[:50], adapters=(1e30, 0.0), score_from=0, logprobs=1, max_tokens=1)
        unsaid = work.submit(LONG[:30], adapters=(1e30, 0.0), max_tokens=0)
        work.wait(5)
        for request in (*bad, scored, unsaid):
            last = work.events[request][-1]
            assert isinstance(last, Failed)
            assert "no number" in last.error.message
        assert [work.answer(LONG, adapters=FIRST), joined_text(work.events[beside])] == expected
        assert work.answer(LONG[:60], adapters=FIRST)
