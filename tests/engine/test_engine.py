"""The engine on a tiny random model: real kernels, random text, every rule of the step loop."""

from __future__ import annotations

import codecs
import logging
import random
from pathlib import Path
from typing import Any

import pytest

from llmrun.engine import ThreadChoice
from llmrun.engine.request import Shift
from llmrun.errors import LlmrunError
from llmrun.llama import Model
from llmrun.types import Failed, Finished, Progress, SamplingParams, Started, Stopped, Text
from tests.support.events import joined_text
from tests.support.likeness import chosen, same, say
from tests.support.models import ENDLESS, running

FOR_EVER: dict[str, Any] = {"max_tokens": 100_000, "shift": Shift(200, 4), "params": ENDLESS}


def _prompt(seed: int, length: int) -> list[int]:
    rng = random.Random(seed)
    return [rng.randrange(10, 260) for _ in range(length)]


def test_engine_one_request_says_started_then_text_then_one_end(model: Model) -> None:
    with running(model) as work:
        request = work.submit(_prompt(0, 5), max_tokens=8)
        work.wait()
    kinds = [type(event) for event in work.events[request]]
    assert kinds[0] is Started
    assert kinds[-2:] == [Stopped, Finished]
    assert kinds.count(Finished) == 1


def test_engine_many_requests_together_say_what_each_says_alone(model: Model) -> None:
    prompts = [_prompt(seed, 5 + 7 * seed) for seed in range(6)]
    with running(model) as work:
        alone = say(work, *prompts)
    with running(model, parallel=6, slots=12) as work:
        assert same(alone, say(work, *prompts, together=True))


@pytest.mark.parametrize("kv_type", ["f16", "q8_0"])
def test_engine_cached_prefix_changes_no_text(model: Model, kv_type: str) -> None:
    prompt = _prompt(1, 100)
    with running(model, kv_type=kv_type) as work:
        first = say(work, prompt)
        again = work.submit(prompt, logprobs=3)
        work.wait()
        assert same(first, [chosen(work, again)])
        assert work.finished(again).usage.cached == 99


def test_engine_one_word_changed_at_the_end_computes_the_tail(model: Model) -> None:
    prompt = _prompt(2, 100)
    changed = [*prompt[:-3], 20, 21, 22]
    with running(model) as work:
        expected = say(work, changed)
    with running(model) as work:
        work.answer(prompt)
        request = work.submit(changed, logprobs=3)
        work.wait()
        assert work.finished(request).usage.cached == 97
        assert same(expected, [chosen(work, request)])


def test_engine_small_batches_change_no_text(model: Model) -> None:
    prompt = _prompt(3, 150)
    with running(model, batch=256) as work:
        whole = say(work, prompt)
    with running(model, batch=16) as work:
        assert same(whole, say(work, prompt))


def test_engine_progress_is_said_once_a_step_where_wanted(model: Model) -> None:
    prompt = _prompt(3, 150)
    with running(model, batch=16) as work:
        silent = work.submit(prompt[:100])
        work.wait()
        assert not [event for event in work.events[silent] if isinstance(event, Progress)]
        request = work.submit(prompt, progress=True, n=2)
        work.wait()
        progress = [event for event in work.events[request] if isinstance(event, Progress)]
        assert [event.processed for event in progress] == [116, 132, 148, 150]
        assert {(event.total, event.cached) for event in progress} == {(150, 100)}
        times = [event.elapsed_ms for event in progress]
        assert 0 < times[0] <= times[-1] <= work.finished(request).timings.prefill_ms
        kinds = [type(event) for event in work.events[request]]
        assert kinds.index(Text) > max(at for at, kind in enumerate(kinds) if kind is Progress)


def test_engine_token_ids_come_with_the_text_they_made(model: Model) -> None:
    letter = {5 + ord("a"): 1000.0}
    with running(model) as work:
        request = work.submit(
            _prompt(7, 9),
            params=SamplingParams(temperature=0, logit_bias=letter),
            stop=("aab",),
            max_tokens=4,
            tokens=True,
        )
        work.wait()
        texts = [event for event in work.events[request] if isinstance(event, Text)]
        assert [(event.text, len(event.tokens)) for event in texts] == [("a", 3), ("aaa", 1)]
        ids = tuple(token for event in texts for token in event.tokens)
        assert ids == work.stopped(request).tokens[9:] == (5 + ord("a"),) * 4


@pytest.mark.parametrize(
    ("stop", "expected"), [("aab", [("a", b"a"), ("aaa", b"aaa")]), ("aaa", []), ("xaaa", [("a", b"a")] * 4)]
)
def test_engine_log_probabilities_come_with_the_text_they_are_of(
    model: Model, stop: str, expected: list[tuple[str, bytes]]
) -> None:
    letter = SamplingParams(temperature=0, logit_bias={5 + ord("a"): 1000.0})
    with running(model) as work:
        request = work.submit(_prompt(7, 9), params=letter, stop=(stop,), max_tokens=4, logprobs=0)
        work.wait()
        texts = [event for event in work.events[request] if isinstance(event, Text)]
        assert [(event.text, b"".join(e.raw for e in event.logprobs)) for event in texts] == expected


def test_engine_answer_ends_before_a_line_that_is_indented_too_little(model: Model) -> None:
    newline = SamplingParams(temperature=0, logit_bias={5 + ord("\n"): 1000.0})
    with running(model) as work:
        request = work.submit(_prompt(7, 9), params=newline, min_indent=2)
        work.wait()
        assert joined_text(work.events[request]) == "\n"
        assert (work.stopped(request).reason, work.stopped(request).limit) == ("length", "lines")
        assert work.finished(request).usage.completion == 2


def test_engine_late_answer_ends_with_its_line(model: Model) -> None:
    newline = SamplingParams(temperature=0, logit_bias={5 + ord("\n"): 1000.0})
    with running(model) as work:
        request = work.submit(_prompt(7, 9), params=newline, line_seconds=0.0)
        work.wait()
        # Of the first token the clock says nothing yet.
        assert joined_text(work.events[request]) == "\n\n"
        assert work.stopped(request).reason == "length"


def test_engine_cells_run_out_all_finish_with_the_text_they_say_alone(model: Model) -> None:
    prompts = [_prompt(seed, 60) for seed in range(4)]
    with running(model, ctx=512) as work:
        alone = say(work, *prompts, max_tokens=120)
    with running(model, ctx=256) as work:
        assert same(alone, say(work, *prompts, together=True, max_tokens=120))
        assert work.engine.scheduler.preemptions > 0


def test_engine_context_ends_the_answer_by_length(model: Model) -> None:
    with running(model, ctx=256) as work:
        request = work.submit(_prompt(4, 250), max_tokens=None)
        work.wait()
        assert work.stopped(request).reason == "length"
        assert work.finished(request).usage.completion == 6


def test_engine_max_tokens_is_exact(model: Model) -> None:
    with running(model) as work:
        request = work.submit(_prompt(5, 9), max_tokens=3)
        work.wait()
        assert work.finished(request).usage.completion == 3


def test_engine_end_of_generation_token_stops_without_its_text(model: Model) -> None:
    bias = SamplingParams(temperature=0, logit_bias={4: 1000.0})
    with running(model) as work:
        request = work.submit(_prompt(6, 9), params=bias)
        work.wait()
        assert work.stopped(request) == Stopped(0, "stop", None)
        assert joined_text(work.events[request]) == ""


def test_engine_stop_string_ends_before_it_and_is_named(model: Model) -> None:
    letter = SamplingParams(temperature=0, logit_bias={5 + ord("a"): 1000.0})
    with running(model) as work:
        request = work.submit(_prompt(7, 9), params=letter, stop=("aaa",))
        work.wait()
        assert joined_text(work.events[request]) == ""
        assert work.stopped(request) == Stopped(0, "stop", "aaa")


def test_engine_begun_stop_string_at_the_limit_is_delivered(model: Model) -> None:
    letter = SamplingParams(temperature=0, logit_bias={5 + ord("a"): 1000.0})
    with running(model) as work:
        request = work.submit(_prompt(8, 9), params=letter, stop=("aaaab",), max_tokens=3)
        work.wait()
        assert joined_text(work.events[request]) == "aaa"
        assert work.stopped(request).reason == "length"


def test_engine_text_of_random_bytes_is_that_of_its_tokens_decoded_together(model: Model) -> None:
    hot = SamplingParams(temperature=5.0, top_k=0, top_p=1.0, min_p=0.0)
    with running(model) as work:
        request = work.submit(_prompt(9, 9), params=hot, max_tokens=400, logprobs=0)
        work.wait()
        raw = b"".join(p.raw for e in work.events[request] if isinstance(e, Text) for p in e.logprobs)
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        assert joined_text(work.events[request]) == decoder.decode(
            raw
        )  # half a character at the end is dropped


def test_engine_same_seed_same_text_other_seed_other_text(model: Model) -> None:
    warm = SamplingParams(temperature=1.5, top_k=0, top_p=1.0, min_p=0.0)
    prompt = _prompt(10, 9)
    with running(model) as work:
        first = work.answer(prompt, params=warm, seed=1)
        assert work.answer(prompt, params=warm, seed=1) == first
        assert work.answer(prompt, params=warm, seed=2) != first


def test_engine_n_answers_have_seeds_of_their_own_and_one_end(model: Model) -> None:
    warm = SamplingParams(temperature=1.5, top_k=0, top_p=1.0, min_p=0.0)
    prompt = _prompt(11, 40)
    with running(model) as work:
        request = work.submit(prompt, params=warm, seed=3, n=3, max_tokens=12)
        work.wait()
        texts = [joined_text(work.events[request], index) for index in range(3)]
        assert len(set(texts)) == 3
        assert work.finished(request).usage.completion <= 36
        assert work.finished(request).usage.prompt == 40
        assert sum(isinstance(event, Stopped) for event in work.events[request]) == 3


def test_engine_penalty_counts_the_tokens_of_the_prompt(model: Model) -> None:
    in_prompt, elsewhere = 5 + ord("a"), 5 + ord("b")
    prompt = [in_prompt, *range(20, 40)]
    bias = {in_prompt: 150.0, elsewhere: 100.0}
    with running(model) as work:
        free = SamplingParams(temperature=0, logit_bias=bias)
        punished = SamplingParams(temperature=0, logit_bias=bias, frequency_penalty=100.0)
        assert work.answer(prompt, max_tokens=1, params=free) == "a"
        assert work.answer(prompt, max_tokens=1, params=punished) == "b"


def test_engine_logprobs_of_greedy_name_the_chosen_token_first(model: Model) -> None:
    with running(model) as work:
        request = work.submit(_prompt(13, 9), logprobs=3, max_tokens=6)
        work.wait()
        logprobs = [p for e in work.events[request] if isinstance(e, Text) for p in e.logprobs]
    assert len(logprobs) == 6
    for entry in logprobs:
        assert entry.top[0].id == entry.id
        assert entry.top[0].logprob == entry.logprob >= entry.top[1].logprob >= entry.top[2].logprob


def test_engine_cancel_waiting_and_running_ends_each_once_and_frees_the_cells(model: Model) -> None:
    with running(model, parallel=1) as work:
        answering = work.submit(_prompt(14, 9), **FOR_EVER)
        waiting = work.submit(_prompt(15, 9))
        work.wait_for_text(answering)
        for request in (waiting, answering, answering):
            work.engine.cancel(request)
        work.wait(2)
        work.answer(_prompt(16, 9))
        for request in (answering, waiting):
            ends = [e for e in work.events[request] if isinstance(e, Failed | Finished)]
            assert len(ends) == 1
            assert isinstance(ends[0], Failed)
            assert ends[0].error.code == "cancelled"
        assert work.engine.scheduler.cells.running == 0


def test_engine_stopped_with_open_requests_fails_them(model: Model) -> None:
    with running(model) as work:
        request = work.submit(_prompt(17, 9), **FOR_EVER)
        work.wait_for_text(request)
        work.engine.stop()
        work.wait()
        last = work.events[request][-1]
        assert isinstance(last, Failed)
        assert last.error.code == "shutting_down"


def test_engine_random_requests_leak_no_cells_and_end_once(model: Model) -> None:
    rng = random.Random(0)
    with running(model, ctx=256, parallel=4, slots=10) as work:
        ids = []
        for seed in range(300):
            prompt = _prompt(seed % 7, rng.randrange(1, 60)) + _prompt(seed, rng.randrange(1, 30))
            ids.append(work.submit(prompt, max_tokens=rng.randrange(1, 40), n=rng.choice([1, 1, 2])))
            if rng.random() < 0.2:
                work.engine.cancel(rng.choice(ids))
        work.wait(len(ids))
        for request in ids:
            assert sum(isinstance(e, Failed | Finished) for e in work.events[request]) == 1
        codes = {e.error.code for i in ids for e in work.events[i] if isinstance(e, Failed)}
        assert codes <= {"cancelled"}


def test_engine_no_tokens_wanted_computes_the_prompt_and_keeps_it(model: Model) -> None:
    prompt = _prompt(11, 50)
    with running(model) as work:
        nothing = work.submit(prompt, max_tokens=0, n=2)
        work.wait()
        assert joined_text(work.events[nothing]) == ""
        assert work.stopped(nothing, 1).reason == "length"
        assert work.finished(nothing).usage.completion == 0
        again = work.submit(prompt)
        work.wait()
        assert work.finished(again).usage.cached == 49


def test_engine_tokens_wanted_are_prompt_and_answer(model: Model) -> None:
    prompt = _prompt(12, 9)
    with running(model) as work:
        first, again = work.submit(prompt, tokens=True, max_tokens=6), work.submit(prompt, max_tokens=6)
        work.wait(2)
        tokens = work.stopped(first).tokens
        assert list(tokens[:9]) == prompt
        assert len(tokens) == 9 + work.finished(first).usage.completion
        assert work.stopped(again).tokens == ()


def test_engine_timings_say_how_the_times_between_tokens_are_spread(model: Model) -> None:
    ticks = iter(range(1_000_000))  # every look at the clock is a second later
    with running(model, clock=lambda: float(next(ticks))) as work:
        request = work.submit(_prompt(3, 9), max_tokens=8, arrived=0.0)
        work.wait()
        timings = work.finished(request).timings
        assert 0 < timings.itl_p50_ms <= timings.itl_p95_ms <= timings.itl_max_ms
        assert timings.itl_max_ms == pytest.approx(timings.itl_ms, rel=0.01)  # each step looks as often
        assert timings.itl_p50_ms == pytest.approx(timings.itl_ms, rel=0.05)
        assert work.engine.counters.itl.longest * 1e3 == timings.itl_max_ms


def test_engine_counters_tell_prompts_from_answers_and_cancelled_from_ended(model: Model) -> None:
    prompt = _prompt(4, 40)
    with running(model, batch=16) as work:
        for _ in range(2):
            work.submit(prompt, max_tokens=6)
            work.wait()
        cancelled = work.submit(_prompt(5, 9), max_tokens=400)
        work.wait_for_text(cancelled)
        work.engine.cancel(cancelled)
        work.engine.cancel(cancelled)
        work.wait()
        counters = work.engine.counters
    assert (counters.prompt_tokens, counters.cached_tokens, counters.prefilled) == (89, 39, 50)
    assert counters.cancelled == 1
    assert counters.decode_rows == counters.decode_steps == counters.completion_tokens
    assert work.engine.scheduler.shared == 1
    assert counters.busy_seconds > 0


def test_engine_other_threads_change_no_text(model: Model) -> None:
    prompts = [_prompt(seed, 5 + 7 * seed) for seed in range(4)]
    with running(model) as work:
        alone = say(work, *prompts, max_tokens=80)
    choice = ThreadChoice(3)
    with running(model, threads=choice) as work:
        assert same(alone, say(work, *prompts, max_tokens=80))
        assert choice.explored or choice.threads < 3


def test_engine_trial_that_is_won_scales_what_steps_cost(model: Model) -> None:
    now = 0.0

    def clock() -> float:  # steps take as long as they have threads
        nonlocal now
        now += choice.next
        return now

    choice = ThreadChoice(2)
    with running(model, threads=choice, clock=clock) as work:
        work.answer(_prompt(1, 4), max_tokens=80)
        assert choice.threads == 1
        assert work.engine.cost.known == {1: 1.0}


class Turned:
    """A clock that moves a second each time it is read."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def test_engine_request_whose_time_is_up_ends_with_what_it_has(model: Model) -> None:
    with running(model, clock=Turned()) as work:
        request = work.submit(_prompt(0, 5), max_tokens=400, deadline=60.0, arrived=0.0, stop=("never said",))
        work.wait()
        events = work.events[request]
        assert isinstance(events[-1], Finished)
        ends = [(event.reason, event.limit) for event in events if isinstance(event, Stopped)]
        assert ends == [("length", "time")]
        assert 0 < events[-1].usage.completion < 60
        assert joined_text(events)
        assert not work.engine.scheduler.running
        assert work.engine.scheduler.cells.running == 0


def test_engine_time_up_before_the_first_token_ends_every_answer_once(model: Model) -> None:
    with running(model, batch=16, clock=Turned()) as work:
        late = work.submit(_prompt(0, 150), n=3, deadline=6.0, arrived=0.0, score_from=0, logprobs=1)
        other = work.submit(_prompt(1, 5))
        work.wait(2)
        events = work.events[late]
        assert isinstance(events[-1], Finished)
        assert sorted(event.index for event in events if isinstance(event, Stopped)) == [0, 1, 2]
        assert isinstance(work.events[other][-1], Finished)


def test_engine_stopped_leaves_the_log_of_native_code_loud(
    model: Model, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with running(model) as work:
        work.submit(_prompt(9, 20), max_tokens=None)
        work.engine.stop()
        work.thread.join(30)
    (tmp_path / "none.gguf").write_bytes(b"no model")
    with pytest.raises(LlmrunError), caplog.at_level(logging.ERROR, "llmrun.llama"):
        Model(tmp_path / "none.gguf")
    assert caplog.records
