from __future__ import annotations

from tests.engine.test_scheduler import World


def test_rows_of_a_short_prompt_do_not_wait_behind_a_long_one() -> None:
    world = World(cells=256)
    (long,) = world.add(list(range(200)))
    (short,) = world.add([300, 301, 302])
    rows = world.step(budget=16)
    assert {row.sequence: (row.length, row.output) for row in rows} == {long: (13, False), short: (3, True)}
