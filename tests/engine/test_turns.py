from __future__ import annotations

from llmrun.engine.request import Adapters, EngineRequest
from llmrun.engine.sequence import Sequence
from llmrun.engine.turns import LENGTH, Turns
from llmrun.types import SamplingParams


def sequence(adapters: Adapters) -> Sequence:
    request = EngineRequest(
        id="r", prompt=(1,), params=SamplingParams(), seed=0, arrived=0.0, adapters=adapters
    )
    return Sequence(request, 0)


def test_turns_one_set_always_has_the_turn() -> None:
    running = [sequence((1.0,)), sequence((1.0,))]
    turns = Turns()
    assert all(turns.take(running) == running for _ in range(3 * LENGTH))
    assert turns.take([]) == []


def test_turns_go_round_in_the_order_of_arrival() -> None:
    first, second, alike, third = (sequence((scale,)) for scale in (1.0, 0.0, 1.0, 0.5))
    turns, running = Turns(), [first, second, alike, third]
    taken = [turns.take(running) for _ in range(4 * LENGTH)]
    assert taken[:LENGTH] == [[first, alike]] * LENGTH
    assert taken[LENGTH : 2 * LENGTH] == [[second]] * LENGTH
    assert taken[2 * LENGTH : 3 * LENGTH] == [[third]] * LENGTH
    assert taken[3 * LENGTH :] == [[first, alike]] * LENGTH


def test_turns_set_that_ends_early_gives_its_turn_away() -> None:
    first, second, third = (sequence((scale,)) for scale in (1.0, 0.0, 0.5))
    turns = Turns()
    assert turns.take([first, second, third]) == [first]
    assert turns.take([second, third]) == [second]
