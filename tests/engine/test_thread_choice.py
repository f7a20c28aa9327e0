"""Made-up machines: what a step takes with so many threads and rows, and when."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

import pytest

from llmrun.engine.thread_choice import WINDOW, ThreadChoice

Machine = Callable[[int, int, float], float]  # threads, rows, time of the day: seconds


def tiny(threads: int, rows: int, _now: float) -> float:
    """Threads wait for each other longer than they work."""
    return 1e-3 * rows**0.5 * (1 + 0.3 * (threads - 1))


def large(threads: int, rows: int, _now: float) -> float:
    """Twice the threads take half the time."""
    return 0.04 * rows**0.5 / threads


def neighbour(start: float, end: float) -> Machine:
    """A large model on two cores, one of which another process burns from `start` to `end`."""

    def seconds(threads: int, rows: int, now: float) -> float:
        return 0.2 * rows**0.5 if threads == 2 and start <= now < end else large(threads, rows, now)

    return seconds


def work(
    choice: ThreadChoice, machine: Machine, until: float, *, now: float = 0.0, noise: float = 0.0
) -> list[tuple[float, int]]:
    """Steps of 1 to 4 rows until that time: when each began, and its threads."""
    rng = random.Random(2)
    steps = []
    while now < until:
        threads, rows = choice.next, rng.randint(1, 4)
        seconds = machine(threads, rows, now) * (1 + noise * rng.random())
        steps.append((now, threads))
        now += seconds
        choice.observe(rows, seconds, now)
    return steps


def share(steps: list[tuple[float, int]], threads: int, start: float, end: float) -> float:
    """The share of the steps between two times that had so many threads."""
    chosen = [count for when, count in steps if start <= when < end]
    return chosen.count(threads) / len(chosen)


def test_tiny_model_ends_with_one_thread() -> None:
    choice = ThreadChoice(4)
    steps = work(choice, tiny, 20)
    assert choice.threads == 1
    assert share(steps, 1, 10, 20) > 0.95


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_large_model_keeps_its_threads_and_is_tried_once(noise: float) -> None:
    choice = ThreadChoice(2)
    steps = work(choice, large, 60, noise=noise)
    assert choice.threads == 2
    assert [threads for _, threads in steps].count(1) <= WINDOW
    assert choice.explored


def test_known_start_is_not_tried_again() -> None:
    choice = ThreadChoice(2, start=2)
    assert {threads for _, threads in work(choice, large, 20)} == {2}


def test_start_of_a_larger_machine_is_capped() -> None:
    assert ThreadChoice(2, start=16).next == 2


def test_busy_neighbour_costs_a_thread_until_it_is_gone() -> None:
    choice = ThreadChoice(2, start=2)
    steps = work(choice, neighbour(20, 100), 200)
    assert share(steps, 2, 0, 20) == 1
    assert share(steps, 1, 30, 100) > 0.9
    assert share(steps, 2, 140, 200) > 0.95


def test_neighbour_that_comes_right_after_a_lost_trial_is_noticed_at_once() -> None:
    choice = ThreadChoice(2)

    def seconds(threads: int, rows: int, now: float) -> float:
        return neighbour(2, 100)(threads, rows, now) / 20

    work(choice, seconds, 2)
    assert choice.explored
    assert choice.threads == 2
    steps = work(choice, seconds, 3, now=2)
    assert share(steps, 1, 2.5, 3) > 0.9


def test_busy_machine_at_the_first_trial_is_found_out_later() -> None:
    choice = ThreadChoice(2)
    work(choice, neighbour(0, 30), 30)
    work(choice, large, 120, now=30)
    assert choice.threads == 2


def test_noise_does_not_make_it_flap() -> None:
    choice = ThreadChoice(2, start=2)
    steps = work(choice, lambda threads, rows, _: 0.02 * rows**0.5 * (1 + 0.02 * threads), 300, noise=1.0)
    changes = sum(one != other for (_, one), (_, other) in pairwise(steps))
    assert changes <= 2 * 300 / 30 + 8


def test_neighbour_that_comes_and_goes_costs_few_trials() -> None:
    choice = ThreadChoice(2, start=2)

    def seconds(threads: int, rows: int, now: float) -> float:
        return neighbour(0, 1)(threads, rows, now % 2)

    steps = work(choice, seconds, 300)
    changes = sum(one != other for (_, one), (_, other) in pairwise(steps))
    assert changes <= 2 * 300 / 30 + 12


def test_trial_that_sees_other_row_counts_ends() -> None:
    choice = ThreadChoice(2)
    for _ in range(WINDOW):
        choice.observe(1, 0.01, 1.0)
    assert choice.trying
    for _ in range(4 * WINDOW):
        assert choice.observe(8, 0.001, 2.0) == 1.0
    assert not choice.trying
    assert choice.threads == 2


def test_won_trial_says_what_steps_cost_now() -> None:
    choice = ThreadChoice(2)
    shares = [choice.observe(1, 0.01 if choice.next == 2 else 0.005, 1.0) for _ in range(2 * WINDOW)]
    assert shares[:-1] == [1.0] * (2 * WINDOW - 1)
    assert shares[-1] == pytest.approx(0.5, rel=0.02)
    assert choice.threads == 1


def test_one_core_has_nothing_to_try() -> None:
    choice = ThreadChoice(1)
    assert {threads for _, threads in work(choice, tiny, 2)} == {1}
