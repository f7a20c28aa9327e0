from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmrun.llama.shortlist import shortlist


@given(size=st.integers(2048, 9000), count=st.integers(1, 128), seed=st.integers(0, 999), few=st.booleans())
def test_shortlist_has_the_highest_in_order(size: int, count: int, seed: int, few: bool) -> None:
    rng = np.random.default_rng(seed)
    logits = rng.standard_normal(size).astype(np.float32)
    if few:  # equal values, and some that a mask took away
        logits = np.round(logits, 1)
        logits[rng.random(size) < 0.5] = -np.inf
    places = shortlist(logits, count)
    assert places is not None
    assert np.all(np.diff(places) > 0)
    highest = np.sort(logits)[::-1][:count]
    np.testing.assert_array_equal(np.sort(logits[places])[::-1][:count], highest)


def test_shortlist_of_random_logits_is_short() -> None:
    logits = np.random.default_rng(1).standard_normal(49_152).astype(np.float32)
    places = shortlist(logits, 40)
    assert places is not None
    assert 40 <= len(places) < 60


@pytest.mark.parametrize(("size", "count"), [(300, 1), (2047, 40), (49_152, 129)])
def test_shortlist_is_none_where_it_is_no_gain(size: int, count: int) -> None:
    assert shortlist(np.zeros(size, np.float32), count) is None
