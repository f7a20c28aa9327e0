"""The watched chain on logits written by hand: it says what each sampler did, and changes nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from llmrun.llama import Model, SamplerChain, TracedChain
from llmrun.types import SamplingParams
from tests.support.models import tiny_model

SHARES = {65: 0.4, 66: 0.3, 67: 0.2, 68: 0.1}
OFF = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Model]:
    loaded = tiny_model(tmp_path_factory.mktemp("model"))
    yield loaded
    loaded.close()


def logits(model: Model) -> np.ndarray:
    made = np.full(model.vocab.size, -1e9, np.float32)
    for token, share in SHARES.items():
        made[token] = np.log(share)
    return made


def traced(model: Model, top: int = 4, seed: int = 0, **params: object) -> TracedChain:
    return TracedChain(model.vocab, SamplingParams(**{**OFF, **params}), seed=seed, ctx=64, top=top)


def test_stages_have_each_sampler_in_its_order_with_what_it_left(model: Model) -> None:
    chain = traced(model, top_k=3, top_p=0.7, temperature=0.5)
    token = chain.pick_among(np.arange(model.vocab.size), logits(model))
    assert [(stage.name, stage.left) for stage in chain.stages] == [
        ("top_k", 3), ("top_p", 2), ("temperature", 2), ("draw", 2),
    ]  # fmt: skip
    cut, nucleus, heated, _ = chain.stages
    assert [math.exp(top.logprob) for top in cut.top] == pytest.approx([4 / 9, 3 / 9, 2 / 9], rel=1e-5)
    assert [math.exp(top.logprob) for top in nucleus.top] == pytest.approx([4 / 7, 3 / 7], rel=1e-5)
    assert [math.exp(top.logprob) for top in heated.top] == pytest.approx([16 / 25, 9 / 25], rel=1e-5)
    assert heated.top[0].raw == model.vocab.piece(65)
    chosen = {top.id: top.logprob for top in heated.top}[token]
    assert heated.logprob == pytest.approx(chosen)


def test_stages_of_greedy_end_with_the_one_that_is_certain(model: Model) -> None:
    chain = traced(model, temperature=0.0)
    assert chain.pick_among(np.arange(model.vocab.size), logits(model)) == 65
    (last,) = chain.stages
    assert (last.name, last.left, last.logprob, [top.id for top in last.top]) == ("greedy", 1, 0.0, [65])


def test_stages_begin_with_the_grammar_where_it_leaves_fewer(model: Model) -> None:
    chain = traced(model)
    chain.pick_among(np.array([66, 67]), logits(model))
    first = chain.stages[0]
    assert (first.name, first.left) == ("grammar", 2)
    assert [math.exp(top.logprob) for top in first.top] == pytest.approx([0.6, 0.4], rel=1e-5)


def test_stages_are_gone_after_a_token_that_was_not_sampled(model: Model) -> None:
    chain = traced(model)
    chain.pick_among(np.arange(model.vocab.size), logits(model))
    assert chain.stages
    chain.accept(65)
    assert chain.stages == ()


@pytest.mark.parametrize(
    "params",
    [
        {"temperature": 0.9, "top_k": 20, "min_p": 0.05},
        {"repeat_penalty": 1.4, "presence_penalty": 0.5, "repeat_last_n": 8},
        {"xtc_probability": 0.5, "xtc_threshold": 0.1},
        {"typical_p": 0.8, "top_n_sigma": 1.5},
        {"mirostat": 1},
        {"mirostat": 2},
        {"samplers": ("adaptive_p",), "adaptive_target": 0.3},
        {"dry_multiplier": 1.0, "dry_allowed_length": 1},
    ],
)
def test_traced_chain_draws_what_the_plain_one_draws(model: Model, params: dict[str, object]) -> None:
    def drawn(kind: type[SamplerChain], **more: int) -> list[int]:
        chain = kind(model.vocab, SamplingParams(**{**OFF, **params}), seed=7, ctx=64, **more)
        noise = np.random.default_rng(1)
        everything = np.arange(model.vocab.size)
        rows = [noise.normal(0, 2, model.vocab.size).astype(np.float32) for _ in range(40)]
        tokens = []
        for row in rows:
            tokens.append(chain.pick_among(everything, row))
            chain.accept(tokens[-1])
        return tokens

    assert drawn(TracedChain, top=3) == drawn(SamplerChain)


def test_stages_stay_with_the_token_that_was_picked_until_another_is_accepted(model: Model) -> None:
    chain = traced(model, temperature=0.0)
    chain.accept(chain.pick_among(np.arange(model.vocab.size), logits(model)))
    assert chain.stages
    chain.accept(65)
    assert not chain.stages


def test_stages_where_biases_rule_out_every_candidate_have_them_alike(model: Model) -> None:
    chain = traced(model, logit_bias={65: -math.inf, 66: -math.inf})
    assert chain.pick_among(np.array([65, 66]), logits(model)) in (65, 66)
    assert [math.exp(top.logprob) for top in chain.stages[-1].top] == pytest.approx([0.5, 0.5])
