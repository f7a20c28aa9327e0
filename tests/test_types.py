from __future__ import annotations

from llmrun.types import Options, SamplingParams


def test_options_over_others_win_where_set_and_join_stops() -> None:
    above = Options(top_k=1, stop=("b", "a"))
    below = Options(top_k=2, top_p=0.5, stop=("a",))
    assert above.over(below) == Options(top_k=1, top_p=0.5, stop=("a", "b"))


def test_options_over_zero_is_set_not_absent() -> None:
    assert Options(temperature=0.0).over(Options(temperature=0.8)).temperature == 0.0


def test_sampling_params_from_no_options_are_the_defaults() -> None:
    assert SamplingParams.from_options(Options(), {}) == SamplingParams()


def test_sampling_params_from_options_take_what_is_set() -> None:
    params = SamplingParams.from_options(Options(temperature=0.0, max_tokens=5, ctx=9), {1: 2.0})
    assert params == SamplingParams(temperature=0.0, logit_bias={1: 2.0})
