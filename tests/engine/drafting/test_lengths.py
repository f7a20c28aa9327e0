from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from llmrun.engine.drafting.lengths import lengths
from llmrun.engine.step_cost import StepCost


def _cost(table: dict[int, float], most: int = 64) -> StepCost:
    cost = StepCost(most)
    for rows, seconds in table.items():
        cost.observe(rows, seconds)
    return cost


CHEAP = _cost({1: 10.0, 64: 16.0})
DEAR = _cost({1: 10.0, 64: 640.0})


def test_lengths_cheap_rows_take_all_likely_guesses() -> None:
    assert lengths([[0.9, 0.8, 0.7]], rows=1, answers=1, room=60, cost=CHEAP) == [3]


def test_lengths_rows_as_dear_as_steps_take_none() -> None:
    assert lengths([[0.9, 0.8, 0.7]], rows=1, answers=1, room=60, cost=DEAR) == [0]


def test_lengths_unlikely_guesses_are_not_worth_cheap_rows() -> None:
    assert lengths([[0.005, 0.001]], rows=1, answers=1, room=60, cost=CHEAP) == [0]


def test_lengths_leap_over_a_count_that_is_dear() -> None:
    cliff = _cost({1: 19, 2: 37, 3: 50, 4: 41, 6: 68, 8: 71})
    assert lengths([[0.9, 0.85, 0.8]], rows=1, answers=1, room=60, cost=cliff) == [3]
    assert lengths([[0.9]], rows=1, answers=1, room=60, cost=cliff) == [0]


def test_lengths_go_to_the_answers_whose_guesses_are_likelier() -> None:
    knee = _cost({4: 10.0, 6: 10.1, 7: 40.0})
    assert lengths([[0.5, 0.1], [0.9, 0.8], []], rows=4, answers=4, room=60, cost=knee) == [0, 2, 0]


def test_lengths_keep_to_the_room() -> None:
    assert sum(lengths([[0.9] * 9] * 4, rows=4, answers=4, room=5, cost=CHEAP)) == 5


falling = st.lists(st.floats(0.01, 1), max_size=3).map(lambda chances: sorted(chances, reverse=True))


@given(
    chances=st.lists(falling, min_size=1, max_size=3),
    times=st.lists(st.floats(1, 100), min_size=13, max_size=13),
)
def test_lengths_expect_as_many_tokens_a_second_as_the_best_of_all_choices(
    chances: list[list[float]], times: list[float]
) -> None:
    cost = _cost(dict(enumerate(times, 1)))
    rows = len(chances)

    def speed(choice: list[int]) -> float:
        tokens = rows + sum(sum(row[:count]) for row, count in zip(chances, choice, strict=True))
        return tokens / cost.seconds(rows + sum(choice))

    every = itertools.product(*(range(len(row) + 1) for row in chances))
    chosen = lengths(chances, rows=rows, answers=rows, room=60, cost=cost)
    assert speed(chosen) >= max(speed(list(choice)) for choice in every) * (1 - 1e-9)
