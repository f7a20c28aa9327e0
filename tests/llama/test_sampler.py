"""The native samplers on logits written by hand: each does what its paper says, and only where asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from llmrun.llama import Model, SamplerChain
from llmrun.llama.library import lib
from llmrun.types import SamplingParams
from tests.support.models import tiny_model

ALL = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
A, B, C, D = 65, 66, 67, 68


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Model]:
    loaded = tiny_model(Path(tmp_path_factory.mktemp("model")))
    yield loaded
    loaded.close()


def draw(
    model: Model,
    shares: dict[int, float],
    *,
    history: list[int] | None = None,
    times: int = 200,
    **params: object,
) -> Counter[int]:
    """How often each token comes where these have these probabilities; seeds 0, 1, 2, …"""
    logits = np.full(model.vocab.size, -50.0, np.float32)
    for token, share in shares.items():
        logits[token] = np.log(share)
    taken: Counter[int] = Counter()
    everything = np.arange(len(logits), dtype=np.intp)
    for seed in range(times):
        chosen = SamplingParams(**{**ALL, **params})
        chain = SamplerChain(model.vocab, chosen, seed=seed, ctx=64, history=history or [])
        taken[chain.pick_among(everything, logits)] += 1
        chain.close()
    return taken


SHARES = {A: 0.5, B: 0.3, C: 0.15, D: 0.05}


def test_sample_no_sampler_on_follows_the_distribution(model: Model) -> None:
    taken = draw(model, SHARES, times=1000)
    assert all(abs(taken[token] / 1000 - share) < 0.06 for token, share in SHARES.items())


def test_sample_top_n_sigma_keeps_what_stands_out(model: Model) -> None:
    # The rest lies 50 below: one standard deviation reaches none of it, but all of these four.
    assert set(draw(model, SHARES, top_n_sigma=1.0)) == {A, B, C, D}
    assert set(draw(model, SHARES, top_n_sigma=0.05)) <= {A, B}


def test_sample_xtc_leaves_the_least_likely_above_the_threshold(model: Model) -> None:
    taken = draw(model, SHARES, xtc_probability=1.0, xtc_threshold=0.1)
    assert set(taken) == {C, D}
    assert A in draw(model, SHARES, xtc_probability=1.0, xtc_threshold=0.6)


def test_sample_dry_moves_off_what_lengthens_a_repetition(model: Model) -> None:
    repeated = [A, B, C, D, A, B, C]
    assert draw(model, {D: 0.9, A: 0.1}, history=repeated, temperature=0.0, times=1) == {D: 1}
    strong = {"temperature": 0.0, "dry_multiplier": 5.0, "dry_allowed_length": 2}
    assert draw(model, {D: 0.9, A: 0.1}, history=repeated, times=1, **strong) == {A: 1}
    assert draw(model, {D: 0.9, A: 0.1}, history=[A, B, C, D], times=1, **strong) == {D: 1}


def test_sample_dry_breaker_ends_the_repetition(model: Model) -> None:
    spelled = model.vocab.piece(C).decode()
    found = draw(
        model,
        {D: 0.9, A: 0.1},
        history=[A, B, C, D, A, B, C],
        times=1,
        temperature=0.0,
        dry_multiplier=5.0,
        dry_sequence_breakers=(spelled,),
    )
    assert found == {D: 1}


@pytest.mark.parametrize("version", [1, 2])
def test_sample_mirostat_of_no_surprise_takes_the_likeliest(model: Model, version: int) -> None:
    assert set(draw(model, SHARES, mirostat=version, mirostat_tau=0.0)) == {A}
    assert set(draw(model, SHARES, mirostat=version, mirostat_tau=8.0)) >= {A, B, C}


def test_sample_dynamic_temperature_is_low_where_the_model_is_sure(model: Model) -> None:
    sure = {A: 0.9, B: 0.1}
    assert draw(model, sure)[B] > 5
    assert draw(model, sure, dynatemp_range=1.0)[B] <= 1


def test_sample_adaptive_p_prefers_tokens_near_the_target(model: Model) -> None:
    order = ("temperature", "adaptive_p")
    taken = draw(model, SHARES, samplers=order, adaptive_target=0.15, adaptive_decay=0.0)
    assert taken[C] > taken[A]


def test_sample_min_keep_holds_a_sampler_back(model: Model) -> None:
    assert set(draw(model, SHARES, top_p=0.01)) == {A}
    assert set(draw(model, SHARES, top_p=0.01, min_keep=2)) == {A, B}


def test_sample_without_a_sampler_in_the_order_leaves_it_out(model: Model) -> None:
    assert set(draw(model, SHARES, top_k=1)) == {A}
    assert len(draw(model, SHARES, top_k=1, samplers=("temperature",))) == 4


def test_sample_order_of_samplers_matters(model: Model) -> None:
    # At a temperature of 0.1 the likeliest alone has 0.9; before it, three of them are needed.
    assert set(draw(model, SHARES, temperature=0.1, top_p=0.9, samplers=("temperature", "top_p"))) == {A}
    assert B in draw(model, SHARES, temperature=1.0, top_p=0.9, samplers=("top_p", "temperature"))


def test_sample_greedy_is_moved_by_penalties_and_xtc_alone(model: Model) -> None:
    rest = {"temperature": 0.0, "top_n_sigma": 1.0, "typical_p": 0.5, "top_k": 3}
    assert draw(model, SHARES, times=20, **rest) == {A: 20}
    assert draw(model, SHARES, times=20, **rest, xtc_probability=1.0) == {C: 20}


@pytest.mark.parametrize(
    "params",
    [
        {"temperature": 0.0},
        {"temperature": 0.0, "logit_bias": {7: -100.0, 1999: 3.0}},
        {"temperature": 1.0, "top_k": 40, "top_p": 0.9, "min_p": 0.05},
        {"temperature": 1.0, "top_k": 40, "logit_bias": {5: 4.0, 6: -100.0, 3000: 2.0}},
        {"temperature": 1.0, "top_k": 20, "samplers": ("top_k", "adaptive_p"), "adaptive_target": 0.2},
    ],
)
def test_sample_by_a_shortlist_takes_what_the_whole_vocabulary_gives(
    model: Model, params: dict[str, object]
) -> None:
    taken: list[list[int]] = [[], []]
    for seed in range(50):
        rng = np.random.default_rng(seed)
        logits = rng.standard_normal(4000).astype(np.float32)
        allowed = np.flatnonzero(rng.random(4000) < 0.9)
        for short, tokens in zip((True, False), taken, strict=True):
            chain = SamplerChain(model.vocab, SamplingParams(**params), seed=seed, ctx=64)  # type: ignore[arg-type]
            if not short:
                chain._reach = None
            tokens += [chain.pick(logits)]
            chain.accept(tokens[-1])
            tokens += [chain.pick_among(allowed, logits)]
            chain.close()
    assert taken[0] == taken[1]


@pytest.mark.parametrize("size", [300, 4000])
@pytest.mark.parametrize(
    "params",
    [
        {"top_k": 0, "top_p": 0.95, "min_p": 0.05},
        {"top_k": 200},
        {"mirostat": 1},
        {"mirostat": 2},
        {"top_k": 40},
        {"temperature": 0.0},
    ],
)
def test_bias_however_large_is_counted(model: Model, params: dict[str, float], size: int) -> None:
    """llama.cpp sorts by integers in places, which 4e8 overflows."""
    logits = np.random.default_rng(1).standard_normal(size).astype(np.float32)
    for bias in (100.0, 1e30, 3.4e38):
        chosen = SamplingParams(**{"temperature": 1.0, **params}, logit_bias={70: bias})  # type: ignore[arg-type]
        chain = SamplerChain(model.vocab, chosen, seed=1, ctx=64)
        assert [chain.pick(logits) for _ in range(5)] == [70] * 5
        chain.close()


def test_infill_sampler_sees_only_the_likeliest(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """It compares each candidate with each, which takes minutes for a vocabulary."""
    cuts: list[int] = []
    top_k = lib.llama_sampler_init_top_k
    monkeypatch.setattr(lib, "llama_sampler_init_top_k", lambda count: cuts.append(count) or top_k(count))
    params = SamplingParams(temperature=1.0, samplers=("infill", "top_k"), top_k=900)
    chain = SamplerChain(model.vocab, params, seed=1, ctx=64)
    logits = np.random.default_rng(1).standard_normal(model.vocab.size).astype(np.float32)
    assert 0 <= chain.pick(logits) < model.vocab.size
    chain.close()
    assert cuts[0] <= 256
