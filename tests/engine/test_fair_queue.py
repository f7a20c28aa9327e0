from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmrun.engine.fair_queue import FairQueue
from llmrun.engine.request import EngineRequest
from llmrun.engine.sequence import Sequence
from llmrun.types import SamplingParams


def sequence(client: str, arrived: int, priority: int = 0) -> Sequence:
    request = EngineRequest(
        id=f"{client}{arrived}",
        prompt=(1,),
        params=SamplingParams(),
        seed=0,
        arrived=float(arrived),
        client=client,
        priority=priority,
    )
    return Sequence(request, 0)


def ids(queue: FairQueue, running: list[Sequence] | None = None) -> list[str]:
    return [one.request.id for one in queue.ordered(running or [])]


def queue_of(*sequences: Sequence) -> FairQueue:
    queue = FairQueue()
    for one in sequences:
        queue.add(one)
    return queue


def test_ordered_of_one_client_is_the_order_of_arrival() -> None:
    assert ids(queue_of(sequence("a", 1), sequence("a", 2), sequence("a", 3))) == ["a1", "a2", "a3"]


def test_ordered_late_client_does_not_wait_for_all_of_another() -> None:
    queue = queue_of(*(sequence("a", n) for n in range(5)), sequence("b", 9), sequence("b", 10))
    assert ids(queue) == ["a0", "b9", "a1", "b10", "a2", "a3", "a4"]


def test_ordered_client_with_less_running_comes_first() -> None:
    queue = queue_of(sequence("a", 1), sequence("b", 9))
    assert ids(queue, [sequence("a", 0)]) == ["b9", "a1"]


def test_ordered_priority_beats_turns() -> None:
    assert ids(queue_of(sequence("a", 1), sequence("a", 2, -1), sequence("b", 3, 5))) == ["a2", "a1", "b3"]


def test_remove_takes_out_the_one_and_no_other() -> None:
    first, second = sequence("a", 1), sequence("a", 2)
    queue = queue_of(first, second)
    queue.remove(first)
    assert (ids(queue), len(queue), bool(queue)) == (["a2"], 1, True)
    with pytest.raises(ValueError, match=r"."):
        queue.remove(first)
    queue.remove(second)
    assert not queue


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(-1, 1)), max_size=12))
def test_ordered_has_everyone_once_and_each_line_in_its_order(arrivals: list[tuple[str, int]]) -> None:
    sequences = [sequence(client, at, priority) for at, (client, priority) in enumerate(arrivals)]
    queue = queue_of(*sequences)
    order = list(queue.ordered([]))
    assert sorted(map(id, order)) == sorted(map(id, sequences))
    for client in "abc":
        for priority in (-1, 0, 1):
            line = [
                s.request.arrived
                for s in order
                if (s.request.client, s.request.priority) == (client, priority)
            ]
            assert line == sorted(line)
