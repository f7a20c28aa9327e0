from __future__ import annotations

import numpy as np

from llmrun.engine.vectors import Room, VectorQueue, VectorRequest


def request(name: str, *lengths: int) -> VectorRequest:
    inputs = tuple(np.zeros(length, np.int32) for length in lengths)
    return VectorRequest(id=name, inputs=inputs, truncated=(0,) * len(inputs), arrived=1.0)


def drained(queue: VectorQueue, room: Room) -> list[list[str]]:
    batches = []
    while len(queue):
        batches.append([f"{each.request.id}{each.number}" for each in queue.take(room)])
    return batches


def queue_of(*requests: VectorRequest) -> VectorQueue:
    queue = VectorQueue()
    for each in requests:
        queue.add(each)
    return queue


def test_take_fills_a_batch_up_to_its_rows() -> None:
    queue = queue_of(request("a", 40, 40, 40))
    assert drained(queue, Room(8, 100, int)) == [["a0", "a1"], ["a2"]]


def test_take_counts_rows_as_the_context_does() -> None:
    queue = queue_of(request("a", 40, 40, 40))
    assert drained(queue, Room(8, 100, lambda tokens: 2 * tokens)) == [["a0"], ["a1"], ["a2"]]


def test_take_keeps_to_the_number_of_sequences() -> None:
    assert drained(queue_of(request("a", 1, 1, 1)), Room(2, 100, int)) == [["a0", "a1"], ["a2"]]


def test_take_gives_requests_their_turn() -> None:
    queue = queue_of(request("a", *[50] * 4), request("b", 50))
    assert drained(queue, Room(8, 100, int)) == [["a0", "b0"], ["a1", "a2"], ["a3"]]


def test_take_one_input_that_is_too_long_comes_alone() -> None:
    assert drained(queue_of(request("a", 500, 1)), Room(8, 100, int)) == [["a0"], ["a1"]]


def test_remove_forgets_what_is_left() -> None:
    one, other = request("a", 1, 1), request("b", 1)
    queue = queue_of(one, other)
    queue.take(Room(1, 100, int))
    queue.remove(one)
    queue.remove(one)
    assert drained(queue, Room(8, 100, int)) == [["b0"]]


def test_timings_split_the_wait_from_the_work() -> None:
    work = request("a", 3)
    work.started = 1.5
    timings = work.timings(2.0)
    assert (timings.queue_ms, timings.prefill_ms, timings.ttft_ms) == (500, 500, 1000)
