from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmrun.engine.prefix_tree import PrefixTree
from llmrun.engine.resident import common_prefix

RUNS = st.lists(st.integers(0, 2), min_size=1, max_size=8).map(tuple)


def ids(run: tuple[int, ...]) -> np.ndarray:
    return np.array(run, np.int32)


def tree_of(*runs: tuple[int, ...]) -> PrefixTree[tuple[int, ...]]:
    tree: PrefixTree[tuple[int, ...]] = PrefixTree()
    for run in runs:
        tree.add(ids(run), run)
    return tree


def test_longest_in_the_middle_of_an_edge_counts_what_is_shared() -> None:
    assert tree_of((1, 2, 3, 4)).longest(ids((1, 2, 9))) == (2, (1, 2, 3, 4))


def test_longest_of_an_empty_tree_or_nothing_in_common_is_none() -> None:
    assert tree_of().longest(ids((1,))) == (0, None)
    assert tree_of((1, 2)).longest(ids((2, 1))) == (0, None)


def test_longest_whole_passes_over_runs_that_go_on_otherwise() -> None:
    tree = tree_of((1, 2), (1, 2, 3, 4))
    assert tree.longest(ids((1, 2, 3, 9)), whole=True) == (2, (1, 2))
    assert tree.longest(ids((1, 9)), whole=True) == (0, None)


def test_remove_of_what_is_not_there_raises() -> None:
    with pytest.raises(KeyError):
        tree_of((1, 2)).remove(ids((1, 2)), (9,))


@given(st.lists(RUNS, max_size=12), st.data())
def test_tree_answers_as_a_list_of_runs_would(runs: list[tuple[int, ...]], data: st.DataObject) -> None:
    kept = list(runs)
    tree = tree_of(*kept)
    for run in data.draw(st.lists(st.sampled_from(runs), unique=True) if runs else st.just([])):
        tree.remove(ids(run), run)
        kept.remove(run)
    prompt = data.draw(RUNS)
    length, value = tree.longest(ids(prompt))
    shared = {run: common_prefix(ids(prompt), ids(run)) for run in kept}
    assert length == max(shared.values(), default=0)
    assert value is None if not length else shared[value] == length
    whole = [len(run) for run in kept if prompt[: len(run)] == run]
    assert tree.longest(ids(prompt), whole=True)[0] == max(whole, default=0)
    assert sorted(tree.prefixes(ids(prompt))) == sorted(run for run in kept if prompt[: len(run)] == run)
    assert sorted(tree) == sorted(kept)
