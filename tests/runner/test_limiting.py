"""Limits of a request on a real engine over a tiny model."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from llmrun.engine import Grammars
from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.llama import Model, guide_tokenizer
from llmrun.runner.limiting import Limiter
from llmrun.types import Failed, Options, SamplingParams
from tests.support.events import joined_text
from tests.support.models import Running, running, tiny_model

PROMPT = list(range(40, 60))


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    model = tiny_model(Path(tmp_path_factory.mktemp("model")))
    with running(model) as work:
        work.model = model  # type: ignore[attr-defined]
        yield work
    model.close()


def answer(work: Running, options: Options, seed: int = 1, **wanted: object) -> tuple[str, str]:
    """The text of an answer within the options' limits, and why it ended."""
    model: Model = work.model  # type: ignore[attr-defined]
    bias = dict(wanted.pop("bias", {}))  # type: ignore[call-overload]
    guides, biases = Limiter(model.vocab).limit((), options, 1, bias)
    params = SamplingParams(temperature=2.0, logit_bias=biases)
    request_id = work.submit(
        PROMPT, params=params, seed=seed, constraints=guides, **{"max_tokens": 24, **wanted}
    )
    work.wait()
    return joined_text(work.events[request_id]), work.stopped(request_id).reason


def test_answer_with_strings_banned_holds_none_of_them(work: Running) -> None:
    strings = tuple("etaoinshr")
    assert any(any(c in answer(work, Options(), seed)[0] for c in strings) for seed in range(4))
    banned = Options(banned_strings=(*strings, "xy", "AB"))
    for seed in range(6):
        text, _ = answer(work, banned, seed)
        assert text
        assert not any(string in text for string in banned.banned_strings or ())


def eager(work: Running) -> dict[int, float]:
    """A bias that makes the model want to end at once."""
    model: Model = work.model  # type: ignore[attr-defined]
    return dict.fromkeys(model.vocab.eog_tokens, 50.0)


def test_answer_of_a_least_length_does_not_end_before(work: Running) -> None:
    assert answer(work, Options(min_tokens=0), bias=eager(work)) == ("", "stop")
    assert answer(work, Options(min_tokens=5), bias=eager(work))[1] == "stop"
    assert [work.finished(one).usage.completion for one in list(work.events)[-2:]] == [1, 6]


def test_answer_that_ignores_end_tokens_ends_by_length(work: Running) -> None:
    assert answer(work, Options(), bias=eager(work)) == ("", "stop")
    assert answer(work, Options(ignore_eos=True), bias=eager(work))[1] == "length"


def test_limit_of_nothing_leaves_answers_free(work: Running) -> None:
    model: Model = work.model  # type: ignore[attr-defined]
    assert Limiter(model.vocab).limit((), Options(temperature=1.0), 2, {7: 1.0}) == ((), {7: 1.0})


def test_limit_that_leaves_no_token_is_refused(work: Running) -> None:
    model: Model = work.model  # type: ignore[attr-defined]
    with pytest.raises(LlmrunError, match="no token to choose") as refused:
        Limiter(model.vocab).limit((), Options(), 1, dict.fromkeys(range(model.vocab.size), -math.inf))
    assert (refused.value.kind, refused.value.field) == (INVALID_REQUEST, "logit_bias")


@pytest.mark.parametrize("stages", [False, True])
def test_answer_whose_grammar_allows_only_what_is_ruled_out_fails_alone(work: Running, stages: bool) -> None:
    model: Model = work.model  # type: ignore[attr-defined]
    grammars = Grammars(functools.partial(guide_tokenizer, model.vocab))
    a, b = grammars.start('start: "a" | "b"', 1)[0].allowed().tolist()

    def asked(*never: int) -> str:
        guides, biases = Limiter(model.vocab).limit(
            grammars.start('start: "a" | "b"', 1), Options(), 1, dict.fromkeys(never, -math.inf)
        )
        return work.submit(
            PROMPT, params=SamplingParams(logit_bias=biases), constraints=guides, logprobs=1, stages=stages
        )

    both, one = asked(a, b), asked(a)
    work.wait(2)
    last = work.events[both][-1]
    assert isinstance(last, Failed)
    assert (last.error.code, "leave no token" in last.error.message) == ("invalid_request", True)
    assert joined_text(work.events[one]) == "b"


@pytest.mark.parametrize("options", [{"ignore_eos": True}, {"min_tokens": 3}])
def test_limit_of_what_the_infill_sampler_would_not_keep_to_is_refused(
    work: Running, options: dict[str, int]
) -> None:
    model: Model = work.model  # type: ignore[attr-defined]
    limiter = Limiter(model.vocab)
    limiter.limit((), Options(samplers=("top_k", "infill")), 1, {})
    with pytest.raises(LlmrunError, match="infill") as refused:
        limiter.limit((), Options(samplers=("infill",), **options), 1, {})  # type: ignore[arg-type]
    assert (refused.value.kind, refused.value.field) == (INVALID_REQUEST, "samplers")


def test_limit_of_a_banned_string_that_no_token_holds_is_refused(work: Running) -> None:
    model: Model = work.model  # type: ignore[attr-defined]
    with pytest.raises(LlmrunError, match="no text") as refused:
        Limiter(model.vocab).limit((), Options(banned_strings=("a\N{REPLACEMENT CHARACTER}",)), 1, {})
    assert refused.value.field == "banned_strings"
