from __future__ import annotations

from llmrun.engine.budget import BURST_S
from llmrun.engine.even_steps import Span
from llmrun.engine.rows import is_burst, longest_prompt, prefill_of
from tests.engine.test_scheduler import World


def test_rows_of_a_short_prompt_do_not_wait_behind_a_long_one() -> None:
    world = World(cells=256)
    (long,) = world.add(list(range(200)))
    (short,) = world.add([300, 301, 302])
    rows = world.step(budget=16)
    assert {row.sequence: (row.length, row.output) for row in rows} == {long: (13, False), short: (3, True)}


def test_prefill_of_rows_counts_prompts_and_the_tokens_before_theirs() -> None:
    world = World(cells=256)
    world.add([1, 2], max_tokens=50)
    world.step()
    world.add(list(range(100, 200)))
    world.step(budget=21)
    prefill = prefill_of(world.plan(31))
    assert (prefill.tokens, prefill.depth, prefill.scored) == (30, 20 + 15, False)


def test_prefill_of_answers_alone_is_none() -> None:
    world = World()
    world.add([1, 2], max_tokens=50)
    world.step()
    assert prefill_of(world.plan(8)) == (0, 0, False)


def test_prefill_of_scored_prompt_says_so() -> None:
    world = World()
    world.add([1, 2, 3], score_from=1)
    assert prefill_of(world.plan(8)).scored


def test_longest_prompt_of_those_that_are_computed_says_where_it_is() -> None:
    world = World(cells=256)
    world.add(list(range(100, 200)))
    world.add([1, 2, 3], max_tokens=50)
    world.step(budget=21)
    assert longest_prompt(world.scheduler.running) == Span(0, 18, 100)


def test_longest_prompt_is_the_one_with_most_to_compute_and_begins_behind_what_was_cached() -> None:
    world = World(cells=512)
    (turn,) = world.add(list(range(100)), max_tokens=2)
    world.run(budget=200)
    history = turn.tokens[:-1].tolist()
    world.add([*history, *range(200, 260)])
    world.add(list(range(300, 340)))
    world.step(budget=30)
    begun = len(history)
    assert longest_prompt(world.scheduler.running) == Span(begun, begun + 15, begun + 60)
    world.add(list(range(400, 470)))
    world.scheduler.admit()
    assert longest_prompt(world.scheduler.running) == Span(0, 0, 70)


def test_longest_prompt_that_is_computed_again_begins_at_its_start() -> None:
    world = World(cells=64, parallel=2)
    world.add(list(range(20)), max_tokens=30)
    world.step(budget=64)
    (young,) = world.add([*range(20), *range(100, 115)], max_tokens=30)
    world.memory.restores = False
    while not world.scheduler.swapped:
        world.step(budget=64)
    world.scheduler.end(world.scheduler.running[0])
    world.scheduler.admit()
    assert young.cached == 20
    assert longest_prompt(world.scheduler.running) == Span(0, 0, young.length)


def test_longest_prompt_beside_answers_alone_is_none() -> None:
    world = World()
    world.add([1, 2], max_tokens=50)
    world.step()
    assert longest_prompt(world.scheduler.running) == Span(0, 0, 0)


def test_is_burst_answer_that_has_just_begun_beside_prompts_that_had_come_before() -> None:
    world = World(cells=256)
    (answer,) = world.add([1, 2], max_tokens=50)
    world.add(list(range(100, 200)))
    world.step(budget=4)
    running, began = world.scheduler.running, float(world.arrivals)
    answer.first_token = began
    assert is_burst(running, began)
    assert is_burst(running, began + BURST_S)
    assert not is_burst(running, began + BURST_S + 0.01)
    answer.first_token = began - 0.01
    assert not is_burst(running, began)  # its reader saw it begin when there was nobody else


def test_is_burst_one_older_answer_is_enough_that_none_is() -> None:
    world = World(cells=256)
    answers = [world.add([first, 2], max_tokens=50)[0] for first in (1, 3)]
    world.add(list(range(100, 200)))
    world.step(budget=8)
    answers[0].first_token, answers[1].first_token = 3.0, 5.0
    assert is_burst(world.scheduler.running, 3.5)
    assert not is_burst(world.scheduler.running, 5.0)


def test_is_burst_answers_alone_and_prompts_alone_are_none() -> None:
    world = World(cells=256)
    (prompt,) = world.add([1, 2], max_tokens=50)
    world.scheduler.admit()
    assert not is_burst(world.scheduler.running, 1.0)
    world.step()
    prompt.first_token = 1.0
    assert not is_burst(world.scheduler.running, 1.0)
