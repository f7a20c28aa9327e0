"""Guesses of any quality change nothing of what the engine says but the number of its steps."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from collections.abc import Sequence as Many

import gguf
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llmrun.chat.output_grammar import grammar_of
from llmrun.engine import Grammars
from llmrun.engine.drafting import Guess, Ngrams
from llmrun.engine.sequence import Sequence
from llmrun.llama import Model
from llmrun.types import Finished, SamplingParams, Stopped, Text, TokenLogprob
from tests.support.events import joined_text
from tests.support.formats import schema_format
from tests.support.models import GREEDY, Running, running, tiny_model
from tests.support.tiny import Shape

WARM = SamplingParams(temperature=1.5, top_k=0, top_p=1.0, min_p=0.0)
PENALISED = SamplingParams(temperature=0.9, repeat_penalty=1.3, frequency_penalty=0.4, presence_penalty=0.2)
LETTERS = SamplingParams(temperature=0, logit_bias={5 + ord("a"): 1000.0})


class Oracle:
    """A drafter that knows how answers go on, and says it right with some chance, wrong else."""

    def __init__(self, right: float, known: Many[Stopped] = ()) -> None:
        self._right = right
        self._known = [list(stopped.tokens) for stopped in known]
        self._rng = random.Random(1)

    def guesses(self, sequences: Many[Sequence], most: int, _seconds: float) -> list[Guess]:
        return [self._guess(sequence, min(most, self._rng.randrange(6))) for sequence in sequences]

    def _guess(self, sequence: Sequence, count: int) -> Guess:
        said = sequence.tokens.tolist()
        ways = [way for way in self._known if way[: len(said)] == said]
        truth = ways[0][len(said) :] if ways else []
        tokens = [
            truth[i] if i < len(truth) and self._rng.random() < self._right else self._rng.randrange(5, 261)
            for i in range(count)
        ]
        return Guess(tokens, [1.0] * count)

    def forget(self, sequence: Sequence) -> None:
        pass


def ticks():  # type: ignore[no-untyped-def]
    """A clock by which every step takes as long as any other, so that all guesses are computed."""
    return itertools.count().__next__


def _logprobs(work: Running, request: str) -> list[TokenLogprob]:
    return [entry for e in work.events[request] if isinstance(e, Text) for entry in e.logprobs]


def _said(work: Running, request: str) -> list[object]:
    """All that a client could tell of an answer: text, log probabilities, tokens, reason, usage."""
    usage = work.finished(request).usage
    said = [joined_text(work.events[request]), _logprobs(work, request), work.stopped(request)]
    return [*said, usage.prompt, usage.completion]


def _same_but_for_ties(said: list[TokenLogprob], tokens: tuple[int, ...]) -> bool:
    """Whether greedy `tokens` are those said, or part from them where another is as likely."""
    for entry, token in zip(said, tokens, strict=False):
        if token != entry.id:
            likely = {top.id: top.logprob for top in entry.top}
            return entry.logprob - likely.get(token, -9e9) < 0.05
    return len(tokens) - len(said) in (0, 1)  # an end token has no log probability


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Model]:
    """Q8_0: llama.cpp computes it alike in one row and in many, so an answer alone in its context is the same
    to the bit. Where others were before or are beside it, sums over its cells are rounded otherwise."""
    shape = Shape(quant=gguf.GGMLQuantizationType.Q8_0, scale=1.5)
    loaded = tiny_model(tmp_path_factory.mktemp("model"), shape)
    yield loaded
    loaded.close()


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Model]:
    """F32: what rounding changes stays small, so that only close ties fall otherwise."""
    loaded = tiny_model(tmp_path_factory.mktemp("exact"), Shape(scale=1.5))
    yield loaded
    loaded.close()


REQUESTS: dict[str, dict[str, object]] = {
    "greedy": {"params": GREEDY, "max_tokens": 40},
    "warm": {"params": WARM, "seed": 3, "max_tokens": 40},
    "penalised": {"params": PENALISED, "seed": 4, "max_tokens": 40},
    "stop": {"params": LETTERS, "stop": ("aaaaa",), "max_tokens": 30},
    "logprobs": {"params": WARM, "logprobs": 2, "max_tokens": 20},
    "short": {"params": GREEDY, "max_tokens": 1},
    "mirostat": {"params": SamplingParams(mirostat=2, temperature=1.2), "max_tokens": 30},
}


ANY = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
rights = st.sampled_from([0.0, 0.5, 0.9, 1.0])


def _with_and_without(
    model: Model, prompt: list[int], right: float, asked: Callable[[], dict[str, object]]
) -> tuple[list[object], list[object]]:
    """What is said without guesses, and with."""
    with running(model) as work:
        request = work.submit(prompt, **asked())
        work.wait()
        plain, oracle = _said(work, request), Oracle(right, [work.stopped(request)])
    with running(model, drafters=(oracle,), clock=ticks()) as work:
        request = work.submit(prompt, **asked())
        work.wait()
        return plain, _said(work, request)


@ANY
@given(name=st.sampled_from(sorted(REQUESTS)), right=rights, length=st.integers(1, 60))
def test_guesses_right_or_wrong_change_nothing_that_is_said(
    model: Model, name: str, right: float, length: int
) -> None:
    prompt = [10 + (7 * length + k * k) % 250 for k in range(length)]
    plain, drafted = _with_and_without(model, prompt, right, lambda: {**REQUESTS[name], "tokens": True})
    assert drafted == plain


@ANY
@given(
    right=rights,
    lengths=st.lists(st.integers(1, 100), min_size=2, max_size=5),
    n=st.integers(1, 2),
    ctx=st.sampled_from([256, 512]),
)
def test_guesses_for_many_answers_change_none_but_where_tokens_tie(
    exact: Model, right: float, lengths: list[int], n: int, ctx: int
) -> None:
    # End tokens have no log probability, by which to tell a tie.
    never = dict.fromkeys(exact.vocab.eog_tokens, -1000.0)
    params = SamplingParams(temperature=0, logit_bias=never)
    asked = {"max_tokens": 60, "tokens": True, "logprobs": 3, "params": params}
    prompts = [[10 + (7 * i + k * k) % 250 for k in range(length)] for i, length in enumerate(lengths)]
    with running(exact) as work:
        alone = [work.submit(prompt, **asked) for prompt in prompts]
        work.wait(len(prompts))
        oracle = Oracle(right, [work.stopped(request) for request in alone])
        expected = [_logprobs(work, request) for request in alone]
    with running(exact, ctx=ctx, drafters=(oracle,), clock=ticks()) as work:
        together = [work.submit(prompt, n=n, **asked) for prompt in prompts]
        work.wait(len(prompts))
        for prompt, said, request in zip(prompts, expected, together, strict=True):
            for index in range(n):
                tokens = work.stopped(request, index).tokens[len(prompt) :]
                assert _same_but_for_ties(said, tokens)


def test_guesses_that_are_right_save_steps_and_are_counted(model: Model) -> None:
    prompt = list(range(30, 50))
    with running(model) as work:
        request = work.submit(prompt, max_tokens=60, tokens=True)
        work.wait()
        oracle = Oracle(1.0, [work.stopped(request)])
    with running(model, drafters=(oracle,), clock=ticks()) as work:
        request = work.submit(prompt, max_tokens=60)
        work.wait()
        usage, counters = work.finished(request).usage, work.engine.counters
        assert usage.accepted == usage.drafted == counters.accepted == counters.drafted > 20
        assert counters.steps == 60 - usage.accepted


def test_guesses_that_are_wrong_are_counted_and_none_accepted(model: Model) -> None:
    with running(model, drafters=(Oracle(0.0),), clock=ticks()) as work:
        request = work.submit(list(range(30, 50)), max_tokens=60)
        work.wait()
        usage = work.finished(request).usage
        assert usage.drafted > 60
        assert usage.accepted < 6
        assert work.engine.counters.steps == 60 - usage.accepted


def test_guesses_are_not_made_beside_a_prompt(model: Model) -> None:
    """There each would cost as much as a token of the prompt, and make it and all answers wait."""

    class Asked(Oracle):
        decoding: bool = True

        def guesses(self, sequences: Many[Sequence], most: int, seconds: float) -> list[Guess]:
            self.decoding &= all(s.decoding for s in work.engine.scheduler.running)
            return super().guesses(sequences, most, seconds)

    asked = Asked(0.0)
    with running(model, drafters=(asked,), clock=ticks(), batch=16) as work:
        first = work.submit(list(range(30, 50)), max_tokens=200)
        work.wait_for_text(first)
        work.submit(list(range(20, 250)), max_tokens=4)
        work.wait(2)
        assert work.engine.counters.drafted > 0
    assert asked.decoding


def test_guesses_of_a_cancelled_request_leave_nothing_behind(model: Model) -> None:
    with running(model, drafters=(Oracle(0.0),), clock=ticks()) as work:
        for _ in range(20):
            request = work.submit(list(range(30, 50)), max_tokens=None, n=2)
            work.wait_for_text(request)
            work.engine.cancel(request)
            work.wait()
        again = work.submit(list(range(30, 50)), max_tokens=9)
        work.wait()
        assert isinstance(work.events[again][-1], Finished)


OBJECT = schema_format(
    {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 9}, "kind": {"enum": ["cat", "llama"]}},
        "required": ["name", "kind"],
        "additionalProperties": False,
    }
)


@pytest.mark.parametrize("right", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("params", [GREEDY, WARM])
def test_guesses_within_a_grammar_change_nothing(
    model: Model, grammars: Grammars, params: SamplingParams, right: float
) -> None:
    prompt = list(range(60, 80))
    plain, drafted = _with_and_without(
        model,
        prompt,
        right,
        lambda: {
            "params": params,
            "max_tokens": 90,
            "tokens": True,
            "constraints": grammars.start(grammar_of(OBJECT), 1),
        },
    )
    assert drafted == plain


def test_ngrams_of_an_answer_that_repeats_itself_save_most_steps(model: Model) -> None:
    with running(model, drafters=(Ngrams(512),), clock=ticks()) as work:
        text = work.answer([30, 31, 32], params=LETTERS, max_tokens=300)
        assert text == "a" * 300
        assert work.engine.counters.steps < 30


def test_guesses_are_not_made_for_a_request_that_wants_none(model: Model) -> None:
    with running(model, drafters=(Oracle(0.0),), clock=ticks()) as work:
        without = work.submit(list(range(30, 50)), max_tokens=30, drafts=False)
        work.wait()
        with_drafts = work.submit(list(range(30, 50)), max_tokens=30)
        work.wait()
        assert work.finished(without).usage.drafted == 0
        assert work.finished(with_drafts).usage.drafted > 20
