from __future__ import annotations

from llmrun.daemon.vitals import SLACK, Bounds, Vitals

BOUNDS = Bounds(quiet=5.0, silence=30.0, standstill=1000.0)


def at_work(now: float = 100.0) -> Vitals:
    vitals = Vitals(BOUNDS)
    vitals.begin(now)
    return vitals


def test_look_at_one_that_speaks_asks_nothing() -> None:
    vitals = at_work()
    for now in range(100, 200):
        vitals.heard(now, moved=True)
        look = vitals.look(now + 0.5)
        assert look == (None, False, 4.5)


def test_look_silent_one_is_asked_once_and_then_stuck() -> None:
    vitals = at_work()
    assert vitals.look(100.0) == (None, False, 5.0)
    assert vitals.look(105.0) == (None, True, 30.0)
    assert vitals.look(120.0) == (None, False, 15.0)
    assert vitals.look(135.0).stuck == "it gave no sign of life for 35 s"


def test_look_long_step_that_answers_is_alive() -> None:
    """A prefill step of minutes: the engine says nothing, the reading thread answers."""
    vitals = at_work()
    now = 100.0
    while now < 100.0 + BOUNDS.standstill - BOUNDS.quiet - 1:
        look = vitals.look(now)
        assert look.stuck is None
        if look.ask:
            vitals.heard(now + 1.0, moved=False)
        now += min(look.wait, 1.0)


def test_look_one_that_answers_and_never_moves_is_stuck_in_the_end() -> None:
    vitals = at_work()
    for now in range(100, 1100, 4):
        vitals.heard(now, moved=False)
        assert vitals.look(now).stuck is None
    vitals.heard(1099.0, moved=False)
    assert vitals.look(1100.0).stuck == "it made no progress for 1000 s"


def test_look_that_comes_late_gives_all_the_time_anew() -> None:
    """The daemon was stopped, or the machine suspended: the runner is not to blame."""
    vitals = at_work()
    assert vitals.look(105.0).ask
    late = 135.0 + SLACK + 0.1
    assert vitals.look(late) == (None, False, 5.0)
    assert vitals.look(late + 5.0).ask
    assert vitals.look(late + 35.0).stuck


def test_begin_after_a_long_rest_starts_from_there() -> None:
    vitals = at_work()
    vitals.look(100.0)
    vitals.begin(9000.0)
    assert vitals.look(9000.0) == (None, False, 5.0)
