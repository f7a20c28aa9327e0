"""Every kind of model that writes: its greedy text is the same however it comes about."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llmrun.engine import SavedPrefixes
from llmrun.engine.disk_prefixes import DiskPrefixes
from llmrun.llama import Batch, Context, DecodeStatus, Model
from llmrun.llama.library import lib
from llmrun.types import TokenLogprob
from tests.support import likeness
from tests.support.kinds import WRITERS
from tests.support.likeness import Chosen, chosen, same
from tests.support.models import ENDLESS, ENDS, Running, running

LENGTH = 24
SAYS: dict[str, Any] = {"max_tokens": LENGTH, "params": ENDLESS, "logprobs": 3}
LONG = {**SAYS, "max_tokens": 120}


@pytest.fixture(scope="module", params=WRITERS)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Model]:
    loaded = Model(WRITERS[request.param](tmp_path_factory.mktemp("kind") / "tiny.gguf"))
    yield loaded
    loaded.close()


def prompt_of(seed: int, length: int) -> list[int]:
    rng = random.Random(seed)
    return [rng.randrange(10, 260) for _ in range(length)]


PROMPTS = [prompt_of(seed, 20 + 30 * seed) for seed in range(4)]


def say(work: Running, *prompts: list[int], together: bool = False, **wanted: Any) -> list[Chosen]:
    """As `likeness.say`, answers that do not end by themselves."""
    return likeness.say(work, *prompts, together=together, **{**SAYS, **wanted})


def reference(model: Model, prompt: list[int]) -> Chosen:
    """Greedy tokens by plain calls of llama.cpp, in a context of its own."""
    params = lib.llama_context_default_params()
    params.n_ctx = params.n_batch = params.n_ubatch = 512
    params.n_threads = params.n_threads_batch = 1
    params.swa_full = True
    context = lib.llama_init_from_model(model.pointer, params)
    said: Chosen = []
    pending = prompt
    for _ in range(LENGTH):
        ids = (lib.llama_token * len(pending))(*pending)
        assert lib.llama_decode(context, lib.llama_batch_get_one(ids, len(pending))) == 0
        logits = np.ctypeslib.as_array(
            lib.llama_get_logits_ith(context, -1), shape=(model.vocab.size,)
        ).copy()
        total = np.logaddexp.reduce(logits.astype(np.float64))
        logits[list(ENDS)] = -np.inf
        pending = [int(logits.argmax())]
        said.append(TokenLogprob(pending[0], b"", float(logits.max() - total)))
    lib.llama_free(context)
    return said


def test_kind_says_what_llama_cpp_alone_says(model: Model) -> None:
    with running(model) as work:
        assert same(say(work, *PROMPTS), [reference(model, prompt) for prompt in PROMPTS])


def test_kind_says_the_same_beside_others(model: Model) -> None:
    with running(model) as work:
        alone = say(work, *PROMPTS)
    with running(model) as work:
        assert same(alone, say(work, *PROMPTS, together=True))


def test_kind_says_the_same_with_its_prompt_in_the_cache(model: Model) -> None:
    first = PROMPTS[2]
    with running(model) as work:
        request = work.submit(first, **SAYS, tokens=True)
        work.wait()
        plain, longer = chosen(work, request), [*work.stopped(request).tokens, *prompt_of(9, 12)]
    with running(model) as work:
        expected = say(work, longer)
    with running(model) as work:
        again = say(work, first, first)
        assert same([plain, plain], again)
        turn = work.submit(longer, **SAYS)
        work.wait()
        assert same(expected, [chosen(work, turn)])
        assert work.finished(turn).usage.cached == len(first) + LENGTH - 1


def test_kind_says_the_same_after_a_changed_end(model: Model) -> None:
    """A state cannot be cut, nor what outgrew its window: then all is computed again, and right."""
    changed = [*PROMPTS[3][:-5], *prompt_of(8, 5)]
    with running(model) as work:
        expected = say(work, changed)
    with running(model) as work:
        say(work, PROMPTS[3])
        request = work.submit(changed, **SAYS)
        work.wait()
        assert same(expected, [chosen(work, request)])
        assert work.finished(request).usage.cached == (0 if model.saves_whole else len(changed) - 5)


def test_kind_says_the_same_from_the_beginning_of_what_left_the_cache(model: Model) -> None:
    """Of a sliding window llama.cpp saves only the last part: what begins before that is computed."""
    long = prompt_of(5, 150)
    changed = [*long[:100], *prompt_of(8, 12)]
    with running(model) as work:
        expected = say(work, changed)
    with running(model, saved=SavedPrefixes(1 << 30, whole=model.saves_whole), most_retained=0) as work:
        say(work, long, PROMPTS[1])
        assert same(expected, say(work, changed))


def test_kind_says_the_same_from_the_beginning_of_what_was_swapped_out(model: Model) -> None:
    prompts = [prompt_of(seed, 60) for seed in range(4)]
    changed = [*prompts[3][:40], *prompt_of(8, 12)]
    with running(model) as work:
        expected = say(work, changed)
    with running(model, ctx=256) as work:
        say(work, *prompts, together=True, **LONG)
        assert work.engine.scheduler.preemptions > 0
        assert same(expected, say(work, changed))


def test_kind_says_the_same_when_swapped_out_and_in(model: Model) -> None:
    prompts = [prompt_of(seed, 60) for seed in range(4)]
    with running(model, ctx=512) as work:
        alone = say(work, *prompts, **LONG)
    with running(model, ctx=256) as work:
        assert same(alone, say(work, *prompts, together=True, **LONG))
        assert work.engine.scheduler.preemptions > 0


def test_kind_says_the_same_in_small_batches(model: Model) -> None:
    with running(model, batch=256) as work:
        whole = say(work, *PROMPTS)
    with running(model, batch=16) as work:
        assert same(whole, say(work, *PROMPTS))


def test_kind_random_requests_and_cancels_end_once_and_leak_nothing(model: Model) -> None:
    rng = random.Random(0)
    with running(model, ctx=256, parallel=4, slots=10) as work:
        ids = []
        for seed in range(60):
            prompt = prompt_of(seed % 5, rng.randrange(1, 60)) + prompt_of(seed, rng.randrange(1, 30))
            ids.append(work.submit(prompt, max_tokens=rng.randrange(1, 40), n=rng.choice([1, 1, 2])))
            if rng.random() < 0.2:
                work.engine.cancel(rng.choice(ids))
        work.wait(len(ids))
        codes = {event.error.code for i in ids for event in work.events[i] if hasattr(event, "error")}
        assert codes <= {"cancelled"}


def test_kind_says_the_same_where_several_begin_alike_and_computes_that_once(model: Model) -> None:
    """Also where the beginning is longer than a window: it is shared as soon as it is computed."""
    begun = prompt_of(40, 150)
    prompts = [[*begun, *prompt_of(seed, 12)] for seed in range(41, 44)]
    with running(model) as work:
        alone = [say(work, prompt)[0] for prompt in prompts]
    with running(model) as work:
        assert same(alone, say(work, *prompts, together=True))
        if model.trimmable:
            assert work.engine.scheduler.shared >= 1


def test_kind_says_the_same_after_its_prefix_was_gathered(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    if model.saves_whole:
        pytest.skip("what is saved of it can only be taken whole, so that nothing is gathered")
    burst = [prompt_of(seed, 150) for seed in range(20, 23)]
    short = prompt_of(30, 40)
    again = [*short, *prompt_of(31, 20)]
    with running(model, ctx=1024) as work:
        expected = say(work, again)
    with running(model, ctx=1024, saved=SavedPrefixes(1 << 30), most_retained=100) as work:
        gathered, cells = threading.Event(), work.engine.scheduler.cells
        reset_peak = cells.reset_peak
        monkeypatch.setattr(cells, "reset_peak", lambda: (reset_peak(), gathered.set()))
        ids = [work.submit(prompt, **SAYS) for prompt in burst]
        ids.append(work.submit(short, **{**SAYS, "max_tokens": LENGTH + 8}))
        work.wait(len(ids))
        assert gathered.wait(30)
        assert cells.peak == cells.used > 0
        turn = work.submit(again, **SAYS)
        work.wait()
        assert same(expected, [chosen(work, turn)])
        assert work.finished(turn).usage.cached >= len(short)


def test_kind_stopped_within_a_step_leaves_nothing_that_harms_the_next_start(
    model: Model, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A state that cannot be cut back to before the step is not saved under the tokens before it."""
    if model.trimmable:
        pytest.skip("its memory is cut back, and answers from the disk are in test_kv_tiers.py")
    long = prompt_of(50, 300)
    with running(model, batch=128) as work:
        expected = say(work, long)

    def saved() -> SavedPrefixes:
        disk = DiskPrefixes(tmp_path, "k", 1 << 30, whole=model.saves_whole)
        disk.ready.wait(10)
        return SavedPrefixes(1 << 30, disk, whole=model.saves_whole)

    decode, steps = Context.decode, itertools.count()
    with running(model, batch=128, saved=saved()) as work:

        def stopped(context: Context, batch: Batch) -> DecodeStatus:
            if next(steps) == 1:
                work.engine.stop()
            return decode(context, batch)

        monkeypatch.setattr(Context, "decode", stopped)
        work.submit(long, **SAYS)
        work.wait()
        work.thread.join(30)
    monkeypatch.undo()
    with running(model, batch=128, saved=saved()) as work:
        assert same(expected, say(work, long))
