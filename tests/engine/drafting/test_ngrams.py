from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmrun.engine.drafting.earlier import Earlier
from llmrun.engine.drafting.ngrams import MANY, Copying, Ngrams
from llmrun.engine.request import EngineRequest
from llmrun.engine.sequence import Sequence
from llmrun.types import SamplingParams


def _copying(prompt: list[int]) -> Copying:
    return Copying(np.array(prompt, np.int32), len(prompt) + 100, Earlier(MANY))


def test_guess_after_tokens_seen_before_is_what_followed_them() -> None:
    copying = _copying([1, 2, 3, 4, 5, 6, 7, 8, 9])
    copying.extend([20, 3, 4, 5])
    assert copying.guess(3).tokens == [6, 7, 8]


def test_guess_of_what_never_came_before_is_none() -> None:
    copying = _copying([1, 2, 3, 4, 5, 6, 7])
    copying.extend([9, 8, 7, 6])
    assert copying.guess(5).tokens == []


def test_guess_prefers_the_newest_place() -> None:
    copying = _copying([1, 2, 3, 70, 5, 1, 2, 3, 80, 6])
    copying.extend([1, 2, 3])
    assert copying.guess(1).tokens == [80]


def test_guess_prefers_more_tokens_in_common_to_the_newest_place() -> None:
    long = list(range(30, 40))
    copying = _copying([*long, 70, 5, 38, 39, 99, 37, 38, 39, 80])
    copying.extend(long)
    assert copying.guess(1).tokens == [70]


def test_guess_goes_on_behind_a_token_that_was_wrong_once_few_agree_again() -> None:
    copying = _copying(list(range(100, 140)))
    copying.extend([100, 101, 102, 103, 5, 105, 106])
    assert copying.guess(1).tokens == []
    copying.extend([107])
    assert copying.guess(2).tokens == [108, 109]


@pytest.mark.parametrize(
    ("said", "then"),
    [
        pytest.param([5, 113], [114, 115], id="replaced"),
        pytest.param([5, 6, 114], [115, 116], id="two replaced"),
        pytest.param([115], [116, 117], id="left out"),
        pytest.param([5, 112], [113, 114], id="put in"),
    ],
)
def test_guess_goes_on_at_once_where_a_long_copy_differs_in_a_word(said: list[int], then: list[int]) -> None:
    copying = _copying(list(range(100, 140)))
    copying.extend([*range(100, 112), *said])
    assert copying.guess(2).tokens == then


def test_guess_far_from_where_a_long_copy_was_lost_takes_more_than_a_token() -> None:
    copying = _copying(list(range(100, 140)))
    copying.extend([*range(100, 112), *range(5, 20), 113])
    assert copying.guess(2).tokens == []
    copying = _copying(list(range(100, 140)))
    copying.extend([*range(100, 112), 130])
    assert copying.guess(2).tokens == []


def test_guess_near_the_end_repeats() -> None:
    copying = _copying([1, 2, 3, 1, 2, 3, 1])
    copying.extend([2, 3, 1])
    assert copying.guess(7).tokens == [2, 3, 1, 2, 3, 1, 2]


def test_chances_fall_and_rise_with_the_tokens_in_common() -> None:
    copying = _copying(list(range(50)))
    copying.extend([5, 6, 7])
    early = copying.guess(5).chances
    assert early == sorted(early, reverse=True)
    copying.extend(range(8, 30))
    assert copying.guess(1).chances[0] > early[0]


def test_chances_where_guesses_keep_missing_sink_without_a_draft() -> None:
    rng = random.Random(0)
    copying = _copying([])
    for _ in range(60):  # the same three tokens, and every time another one after them
        copying.extend([1, 2, 3])
        assert not copying.guess(4).tokens or copying.guess(4).chances[0] < 0.5
        copying.extend([rng.randrange(1000, 99999)])
    copying.extend([1, 2, 3])
    assert not any(chance > 0.1 for chance in copying.guess(1).chances)


@given(
    prompt=st.lists(st.integers(0, 3), max_size=60), said=st.lists(st.integers(0, 3), min_size=1, max_size=60)
)
def test_guess_is_what_came_after_the_newest_token(prompt: list[int], said: list[int]) -> None:
    copying = _copying(prompt)
    copying.extend(said)
    text = prompt + said
    followed = {after for before, after in itertools.pairwise(text) if before == text[-1]}
    assert set(copying.guess(1).tokens) <= followed


def test_guess_is_what_an_earlier_answer_said_after_the_same_tokens() -> None:
    earlier = Earlier(MANY)
    earlier.add(np.arange(500, 540, dtype=np.int32))
    copying = Copying(np.arange(20, dtype=np.int32), 100, earlier)
    copying.extend(range(500, 500 + MANY - 1))
    assert copying.guess(2).tokens == []
    copying.extend([500 + MANY - 1])
    assert copying.guess(2).tokens == [500 + MANY, 501 + MANY]
    assert copying.guess(100).tokens == list(range(500 + MANY, 540))[: len(copying.guess(100).tokens)]


def test_guess_where_an_earlier_answer_was_right_more_often_than_the_prompt_is_the_answers() -> None:
    text = list(range(100, 200))
    said = [*range(100, 120), 7, *range(121, 140), 7, *range(141, 160), 7, *range(161, 180), 7]
    earlier = Earlier(MANY)
    earlier.add(np.array([*said, *range(181, 199)], np.int32))
    copying = Copying(np.array(text, np.int32), 300, earlier)
    copying.extend(said[:-1])
    assert copying.guess(2).tokens == [7, 181]


def test_drafter_guesses_what_it_said_in_an_earlier_answer() -> None:
    drafter = Ngrams(4096)
    first = _sequence(list(range(20)))
    for token in range(600, 660):
        first.append(token)
    drafter.guesses([first], 4, 0.0)
    drafter.forget(first)
    second = _sequence(list(range(20)))
    for token in range(600, 602):
        second.append(token)
    (guess,) = drafter.guesses([second], 4, 0.0)
    assert guess.tokens == [602, 603, 604, 605]


def _sequence(prompt: list[int], max_tokens: int | None = None) -> Sequence:
    request = EngineRequest(
        id="1",
        prompt=tuple(prompt),
        params=SamplingParams(),
        seed=0,
        arrived=0.0,
        max_tokens=max_tokens,
    )
    return Sequence(request, 0)


@pytest.mark.parametrize("max_tokens", [None, 2, 10**9])
def test_ngrams_catch_up_with_a_sequence_however_far_it_grew(max_tokens: int | None) -> None:
    ngrams, sequence = Ngrams(512), _sequence(list(range(10, 40)), max_tokens)
    for grown in ([10, 11, 12], [13], [14, 15, 16, 17]):
        for token in grown:
            sequence.append(token)
        (guess,) = ngrams.guesses([sequence], 3, 0.0)
        assert guess.tokens == [grown[-1] + 1, grown[-1] + 2, grown[-1] + 3]
    ngrams.forget(sequence)
    ngrams.forget(sequence)
