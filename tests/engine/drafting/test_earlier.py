from __future__ import annotations

import numpy as np

from llmrun.engine.drafting import earlier
from llmrun.engine.drafting.earlier import Earlier
from llmrun.engine.drafting.table import Table
from llmrun.engine.resident import Tokens

N = 4


def _text(*tokens: int) -> Tokens:
    return np.array(tokens, np.int32)


def _hash(*tokens: int) -> int:
    table = Table(N, 8)
    table.fill(_text(*tokens))
    return table.hash


def test_find_gives_the_place_behind_the_tokens_in_the_newest_text() -> None:
    texts = Earlier(N)
    texts.add(_text(1, 2, 3, 4, 50, 51))
    texts.add(_text(1, 2, 3, 4, 60, 61))
    place = texts.find(_hash(1, 2, 3, 4))
    assert texts.after(place, 5) == [60, 61]
    assert texts.at(place) == 60


def test_after_the_last_token_of_a_text_comes_none_of_the_next() -> None:
    texts = Earlier(N)
    texts.add(_text(1, 2, 3, 4))
    texts.add(_text(5, 6, 7, 8, 9))
    place = texts.find(_hash(1, 2, 3, 4))
    assert texts.after(place, 5) == []
    assert texts.at(place) is None


def test_common_counts_the_newest_tokens_before_a_place_within_its_text() -> None:
    texts = Earlier(N)
    texts.add(_text(7, 7, 7, 7))
    texts.add(_text(1, 2, 3, 4, 5, 6))
    place = texts.find(_hash(2, 3, 4, 5))
    assert texts.common(place, [9, 2, 3, 4, 5], 10) == 4
    assert texts.common(place, [9, 2, 3, 4, 5], 2) == 2
    assert texts.common(place, [7, 7, 1, 2, 3, 4, 5], 10) == 5


def test_add_beyond_what_is_kept_lets_older_texts_go_and_keeps_places_of_newer_ones() -> None:
    texts = Earlier(N)
    texts.add(_text(*range(100, 200)))
    old = texts.find(_hash(100, 101, 102, 103))
    assert texts.at(old) == 104
    count = earlier._MOST // earlier._LONGEST - 2
    for _ in range(count):
        texts.add(np.full(earlier._LONGEST, 5, np.int32))
    texts.add(_text(*range(300, 320)))
    young = texts.find(_hash(300, 301, 302, 303))
    for _ in range(4):
        texts.add(np.full(earlier._LONGEST, 6, np.int32))
    assert texts.at(old) is None
    assert texts.find(_hash(100, 101, 102, 103)) == 0
    assert texts.after(young, 2) == [304, 305]
    assert texts.at(texts.find(_hash(300, 301, 302, 303))) == 304


def test_add_of_a_long_text_keeps_its_beginning() -> None:
    texts = Earlier(N)
    texts.add(np.arange(earlier._LONGEST + 10, dtype=np.int32))
    assert texts.at(texts.find(_hash(0, 1, 2, 3))) == 4
    last = earlier._LONGEST
    assert texts.find(_hash(last, last + 1, last + 2, last + 3)) == 0
