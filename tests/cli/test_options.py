from __future__ import annotations

import pytest

from llmrun.cli.options import UNSET, describe, parse_option, parse_options
from llmrun.errors import USAGE, LlmrunError
from llmrun.types import Options


def test_parse_options_types_and_spellings() -> None:
    pairs = ["temperature=0.5", "top-k=3", "Min_P = 0.1", "seed=7", "max_tokens=9"]
    assert parse_options(pairs) == Options(temperature=0.5, top_k=3, min_p=0.1, seed=7, max_tokens=9)


def test_parse_options_later_wins_and_stops_add_up() -> None:
    parsed = parse_options(["top_k=1", "stop=a=b", "top_k=2", "stop= c"])
    assert parsed == Options(top_k=2, stop=("a=b", " c"))


@pytest.mark.parametrize(
    ("pair", "says"),
    [
        ("temprature=1", "did you mean 'temperature'?"),
        ("num_ctx=5", "did you mean 'ctx'?"),
        ("num_predict=5", "did you mean 'max_tokens'?"),
        ("zebra=1", "known are temperature, top_k"),
        ("mirostat=3", "not a whole number from 0 to 2"),
        ("samplers=top_k;foo", "not a list of penalties, dry"),
        ("ignore_eos=perhaps", "not true or false"),
        ("top_k=1.5", "not a whole number"),
        ("top_k=true", "not a whole number"),
        ("top_p=", "not a number"),
        ("temperature=nan", "not a number"),
        ("temperature=1e999", "not a number"),
        ("seed", "has no value"),
    ],
)
def test_parse_options_wrong_pair_is_refused_in_words(pair: str, says: str) -> None:
    with pytest.raises(LlmrunError) as caught:
        parse_options([pair])
    assert caught.value.kind is USAGE
    assert says in str(caught.value)


def test_every_option_can_be_set() -> None:
    unusual = {"samplers": "top_k;temp", "adaptive_decay": "0.5"}
    for name in Options.__struct_fields__:
        assert parse_option(name, unusual.get(name, "1")) != Options()


def test_describe_names_every_option() -> None:
    described = describe(Options(temperature=0.0, stop=("a", "\n")))
    assert set(described) == set(Options.__struct_fields__)
    assert described["temperature"] == "0.0"
    assert described["stop"] == r"'a' '\n'"
    assert described["top_k"] == UNSET


def test_describe_shows_values_as_they_are_typed() -> None:
    described = describe(Options(), Options(ignore_eos=True))
    assert described["samplers"].startswith("penalties;dry;top_n_sigma;")
    assert described["dry_sequence_breakers"] == r'["\n",":","\"","*"] (default)'
    assert described["ignore_eos"] == "true (the model's)"
    assert described["seed"] == "not set"
    for name in ("samplers", "dry_sequence_breakers", "ignore_eos"):
        assert parse_option(name, described[name].rpartition(" (")[0])
