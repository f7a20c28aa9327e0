from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from llmrun.cli.mapping.ordered import InOrder

WAIT = 20  # seconds until a test that hangs fails


def test_results_come_in_order_though_the_first_takes_longest() -> None:
    others = threading.Semaphore(0)

    def work(number: int) -> int:
        if number == 0:
            for _ in range(3):
                assert others.acquire(timeout=WAIT)
        else:
            others.release()
        return number * 10

    found: list[int] = []
    InOrder(work, found.append, workers=4, window=4).run(range(4))
    assert found == [0, 10, 20, 30]


def test_as_many_run_together_as_there_are_workers() -> None:
    together = threading.Barrier(3)

    def work(number: int) -> int:
        together.wait(WAIT)
        return number

    found: list[int] = []
    InOrder(work, found.append, workers=3, window=3).run(range(9))
    assert found == list(range(9))


def test_no_more_is_taken_in_than_the_window_holds() -> None:
    taken, held, begun = [], threading.Event(), threading.Event()

    def things() -> Iterator[int]:
        for number in range(10):
            taken.append(number)
            if number == 3:
                begun.set()
            yield number

    def work(number: int) -> int:
        if number == 0:
            assert begun.wait(WAIT)
            assert held.wait(WAIT)
        return number

    found: list[int] = []
    run = InOrder(work, found.append, workers=2, window=3)
    thread = threading.Thread(target=run.run, args=(things(),))
    thread.start()
    assert begun.wait(WAIT)
    # The fourth has been read and waits for room: three are in, of which none is out.
    assert (taken, found) == ([0, 1, 2, 3], [])
    held.set()
    thread.join(WAIT)
    assert found == list(range(10))


def test_nothing_to_do_ends_at_once() -> None:
    InOrder(str, lambda _text: None, workers=3, window=3).run([])


@pytest.mark.parametrize("where", ["work", "emit", "things"])
def test_a_failure_ends_it_and_is_raised(where: str) -> None:
    found: list[int] = []

    def fail_at(place: str, number: int) -> int:
        if place == where and number == 2:
            raise BrokenPipeError(where)
        return number

    run = InOrder[int, int](
        lambda number: fail_at("work", number),
        lambda number: found.append(fail_at("emit", number)),
        workers=2,
        window=4,
    )
    with pytest.raises(BrokenPipeError, match=where):
        run.run(fail_at("things", number) for number in range(100))
    assert found in ([], [0], [0, 1])
