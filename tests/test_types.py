from __future__ import annotations

import pytest

from llmrun.types import Options, SamplingParams
from llmrun.types.option_text import (
    OPTION_NAMES,
    option_form,
    option_spelling,
    option_value,
    sampler_names,
)


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


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("samplers", "top-k; typical;temp", ("top_k", "typ_p", "temperature")),
        ("samplers", '["xtc"]', ("xtc",)),
        ("dry_sequence_breakers", '["\\n", ":"]', ("\n", ":")),
        ("banned_strings", "as an AI", ("as an AI",)),
        ("ignore_eos", "true", True),
        ("temperature", "1", 1.0),
        ("stop", "[x", ("[x",)),
    ],
)
def test_option_value_reads_what_people_write(name: str, text: str, value: object) -> None:
    assert option_value(name, text) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("top_k", "1.5"),
        ("top_p", "2"),
        ("temperature", "nan"),
        ("top_k", "null"),
        ("samplers", "[1"),
        ("seed", ""),
    ],
)
def test_option_value_out_of_its_type_or_bounds_raises(name: str, text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        option_value(name, text)


def test_option_spelling_of_every_option_reads_back() -> None:
    options = Options(
        samplers=("top_k",),
        banned_strings=("a;b", '"'),
        ignore_eos=True,
        mirostat=2,
        mirostat_eta=0.1,
        seed=-1,
    )
    for name in OPTION_NAMES:
        if name != "stop" and (value := getattr(options, name)) is not None:
            assert option_value(name, option_spelling(value)) == value


def test_option_form_says_type_and_bounds() -> None:
    assert option_form("mirostat") == "a whole number from 0 to 2"
    assert option_form("top_k") == "a whole number from 0"
    assert option_form("ignore_eos") == "true or false"


def test_sampling_params_name_every_sampler_option() -> None:
    limits = {"max_tokens", "min_tokens", "ignore_eos", "banned_strings", "stop", "ctx", "time_limit"}
    assert set(Options.__struct_fields__) - limits == set(SamplingParams.__struct_fields__) - {"logit_bias"}


def test_sampler_names_of_letters_and_of_other_spellings() -> None:
    assert sampler_names("edskypmxtai") == [
        *("penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"),
        *("adaptive_p", "infill"),
    ]
    assert sampler_names(["Top-K", "typical", "temp", 5]) == ["top_k", "typ_p", "temperature", 5]
    assert sampler_names("kq") == ["top_k", "q"]
