from __future__ import annotations

from llmrun.engine.even_steps import Span
from llmrun.engine.rows import longest_prompt, prefill_of
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
    prefill = prefill_of(world.scheduler.plan(31))
    assert (prefill.tokens, prefill.depth, prefill.scored) == (30, 20 + 15, False)


def test_prefill_of_answers_alone_is_none() -> None:
    world = World()
    world.add([1, 2], max_tokens=50)
    world.step()
    assert prefill_of(world.scheduler.plan(8)) == (0, 0, False)


def test_prefill_of_scored_prompt_says_so() -> None:
    world = World()
    world.add([1, 2, 3], score_from=1)
    assert prefill_of(world.scheduler.plan(8)).scored


def test_longest_prompt_of_those_that_are_computed_says_where_it_is() -> None:
    world = World(cells=256)
    world.add(list(range(100, 200)))
    world.add([1, 2, 3], max_tokens=50)
    world.step(budget=21)
    assert longest_prompt(world.scheduler.running) == Span(0, 18, 100)


def test_longest_prompt_beside_answers_alone_is_none() -> None:
    world = World()
    world.add([1, 2], max_tokens=50)
    world.step()
    assert longest_prompt(world.scheduler.running) == Span(0, 0, 0)
