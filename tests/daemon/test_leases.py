"""The rules of who waits, who is granted and who is refused: no processes, no sleeps."""

from __future__ import annotations

from llmrun.daemon.states import State
from llmrun.errors import MODEL_LOAD, OVERLOADED, SHUTTING_DOWN, LlmrunError
from tests.daemon.bench import DIED, Bench
from tests.daemon.fakes import INFO


def test_want_many_first_requests_start_one_runner() -> None:
    bench = Bench()
    for number in range(20):
        bench.want(f"r{number}")
    assert bench.take() == [("start", "a")]
    bench.book.ready("a", INFO)
    assert bench.take() == [("grant", f"r{number}") for number in range(20)]
    assert bench.book.residents["a"].leases == 20
    assert set(bench.effects.granted.values()) == {"a"}


def test_want_ready_runner_grants_at_once() -> None:
    bench = Bench()
    bench.load("r1")
    bench.want("r2")
    assert bench.take() == [("grant", "r2")]


def test_release_while_waiting_takes_the_request_out() -> None:
    bench = Bench()
    bench.want("r1")
    bench.want("r2")
    bench.release("r1")
    bench.book.ready("a", INFO)
    assert bench.take() == [("start", "a"), ("grant", "r2")]


def test_release_twice_counts_once() -> None:
    bench = Bench()
    bench.load("r1")
    bench.want("r2")
    bench.release("r1")
    bench.release("r1")
    assert bench.book.residents["a"].leases == 1


def test_ready_after_all_left_keeps_the_model_for_its_idle_time() -> None:
    bench = Bench()
    bench.want("r1")
    bench.release("r1")
    bench.book.ready("a", INFO)
    assert bench.take() == [("start", "a")]
    assert bench.effects.alarm == bench.now + 300


def test_ready_after_who_asked_left_keeps_the_model_as_long_as_they_said() -> None:
    bench = Bench()
    bench.want("r1", keep_alive=0.0)
    bench.release("r1")
    bench.book.ready("a", INFO)
    bench.book.tick()
    assert [kind for kind, _ in bench.take()] == ["start", "stop"]


# keep-alive


def test_idle_runner_is_stopped_when_its_time_is_over_and_not_before() -> None:
    bench = Bench()
    bench.idle()
    assert bench.effects.alarm == bench.now + 300
    bench.now += 299
    bench.book.tick()
    assert bench.take() == []
    bench.now += 1
    bench.book.tick()
    assert bench.take() == [("stop", "a")]


def test_use_restarts_the_idle_time() -> None:
    bench = Bench()
    bench.idle()
    bench.now += 299
    bench.want("r2")
    bench.now += 1000
    bench.book.tick()
    bench.release("r2")
    assert bench.take() == [("grant", "r2")]
    assert bench.effects.alarm == bench.now + 300


def test_keep_alive_zero_stops_after_the_last_request() -> None:
    bench = Bench(keep_alive=0.0)
    bench.load("r1")
    bench.want("r2")
    bench.release("r1")
    assert bench.take() == [("grant", "r2")]
    bench.release("r2")
    assert bench.take() == [("stop", "a")]


def test_keep_alive_infinite_never_stops() -> None:
    bench = Bench(keep_alive=float("inf"))
    bench.idle()
    bench.now += 10**9
    bench.book.tick()
    assert bench.take() == []
    assert bench.effects.alarm is None
    assert bench.book.expires(bench.book.residents["a"]) is None


def test_keep_alive_of_a_request_beats_the_books_and_stays_until_another_names_one() -> None:
    bench = Bench(keep_alive=300.0)
    bench.load("r1", keep_alive=10.0)
    bench.release("r1")
    assert bench.effects.alarm == bench.now + 10
    bench.want("r2")
    bench.release("r2")
    assert bench.effects.alarm == bench.now + 10
    bench.want("r3", keep_alive=float("inf"))
    bench.release("r3")
    assert bench.book.expires(bench.book.residents["a"]) is None


def test_keep_alive_zero_of_a_request_stops_after_all_requests() -> None:
    bench = Bench()
    bench.load("r1", keep_alive=0.0)
    bench.want("r2")
    bench.release("r1")
    assert bench.take() == [("grant", "r2")]
    bench.release("r2")
    assert bench.take() == [("stop", "a")]


def test_keep_alive_does_not_make_another_model_of_it_for_the_crash_guard() -> None:
    bench = Bench()
    for number in range(3):
        bench.now += 10
        bench.want(f"r{number}", keep_alive=float(number))
        bench.book.gone("a", DIED)
    bench.take()
    bench.want("r9", keep_alive=9.0)
    assert bench.take() == [("refuse", "r9")]


def test_let_go_idle_runner_stops_at_once() -> None:
    bench = Bench()
    bench.idle()
    bench.take()
    bench.book.let_go("a")
    assert bench.take() == [("stop", "a")]


def test_let_go_busy_runner_stops_after_its_requests() -> None:
    bench = Bench()
    bench.load("r1")
    bench.book.let_go("a")
    assert bench.take() == []
    bench.release("r1")
    assert bench.take() == [("stop", "a")]


def test_let_go_of_what_is_not_loaded_does_nothing() -> None:
    bench = Bench()
    bench.book.let_go("a")
    assert bench.take() == []


def test_expires_is_told_for_idle_runners_only() -> None:
    bench = Bench()
    bench.load("r1")
    assert bench.book.expires(bench.book.residents["a"]) is None
    bench.release("r1")
    assert bench.book.expires(bench.book.residents["a"]) == bench.now + 300


def test_want_while_stopping_waits_and_loads_again() -> None:
    bench = Bench(keep_alive=0.0)
    bench.idle()
    bench.take()
    bench.want("r2")
    assert bench.take() == []
    bench.book.gone("a", None)
    assert bench.take() == [("start", "a")]


# queue


def test_queue_full_refuses_with_a_time_to_come_back() -> None:
    bench = Bench(parallel=1, queue=2)
    for number in range(4):
        bench.want(f"r{number}")
    assert bench.take() == [("start", "a"), ("refuse", "r3")]
    assert bench.effects.errors["r3"].kind is OVERLOADED
    assert bench.effects.errors["r3"].details == {"retry_after": 1}


def test_queue_counts_the_running_by_what_the_model_runs_together() -> None:
    bench = Bench(parallel=1, queue=2)
    bench.load("r1")  # INFO.parallel is 2
    for number in range(2, 6):
        bench.want(f"r{number}")
    assert bench.take() == [("grant", "r2"), ("grant", "r3"), ("grant", "r4"), ("refuse", "r5")]
    bench.release("r1")
    bench.want("r6")
    assert bench.take() == [("grant", "r6")]


def test_queue_of_one_model_does_not_count_for_another() -> None:
    bench = Bench(parallel=1, queue=0)
    bench.want("r1", "a")
    bench.want("r2", "a")
    bench.want("r3", "b")
    assert bench.take() == [("start", "a"), ("refuse", "r2"), ("start", "b")]


# death


def test_death_while_loading_refuses_all_who_wait_with_the_reason() -> None:
    bench = Bench()
    bench.want("r1")
    bench.want("r2")
    bench.book.gone("a", DIED)
    assert bench.take() == [("start", "a"), ("refuse", "r1"), ("refuse", "r2")]
    assert bench.effects.errors["r1"] is DIED


def test_death_in_use_lets_the_next_request_load_again_at_once() -> None:
    bench = Bench()
    bench.load("r1")
    bench.book.gone("a", DIED)
    bench.want("r2")
    assert bench.take() == [("start", "a")]
    bench.release("r1")  # of the dead runner: the new one's count is not touched
    bench.book.ready("a", INFO)
    assert bench.book.residents["a"].leases == 1


def test_death_of_one_model_leaves_the_other_alone() -> None:
    bench = Bench()
    bench.load("r1", "a")
    bench.load("r2", "b")
    bench.book.gone("a", DIED)
    bench.want("r3", "b")
    assert bench.take() == [("grant", "r3")]


def test_deaths_in_a_row_are_followed_by_a_pause_with_the_last_reason() -> None:
    bench = Bench()
    reason = LlmrunError(MODEL_LOAD, "bad tensor", hint="pull again")
    for _ in range(4):
        bench.want("r")
        bench.book.gone("a", reason)
        bench.now += 10
    bench.want("r")
    bench.book.gone("a", reason)  # the fifth: 8 s
    bench.take()
    bench.want("early")
    assert bench.take() == [("refuse", "early")]
    error = bench.effects.errors["early"]
    assert (error.kind, error.hint, error.details) == (MODEL_LOAD, "pull again", {"retry_after": 7})
    assert error.message.startswith("bad tensor")
    bench.now += 6
    bench.want("later")
    assert bench.take() == [("start", "a")]


def test_request_served_well_ends_the_pause() -> None:
    bench = Bench()
    for _ in range(3):
        bench.load("r")
        bench.book.gone("a", DIED)
        bench.now += 100
        bench.book.release("r")
    bench.load("r")
    bench.release("r", served=True)
    bench.book.gone("a", DIED)
    bench.want("next")
    assert bench.take() == [("start", "a")]


def test_model_whose_file_changed_is_tried_at_once() -> None:
    bench = Bench()
    for _ in range(2):
        bench.want("r")
        bench.book.gone("a", DIED)
    bench.take()
    bench.want("r", version="2")
    assert bench.take() == [("start", "a")]


# stop and close


def test_stop_ends_the_runner_and_those_who_wait_for_it() -> None:
    bench = Bench()
    error = LlmrunError(SHUTTING_DOWN, "a was stopped")
    bench.want("r1", "a")
    bench.want("r2", "b")
    bench.take()
    assert bench.book.stop("a", error)
    assert bench.take() == [("refuse", "r1"), ("stop", "a")]
    assert not bench.book.stop("a", error)
    assert not bench.book.stop("none", error)
    assert bench.book.residents["a"].state is State.STOPPING
    bench.book.ready("a", INFO)  # it was on its way
    assert bench.book.residents["a"].state is State.STOPPING


def test_stop_gives_its_room_to_who_waits() -> None:
    bench = Bench(max_loaded=1)
    bench.load("r1", "a")
    bench.want("r2", "b")
    bench.book.stop("a", DIED)
    bench.book.gone("a", None)
    assert bench.take() == [("stop", "a"), ("start", "b")]


def test_close_ends_all_and_refuses_what_comes_later() -> None:
    bench = Bench(max_loaded=2)
    bench.load("r1", "a")
    bench.want("r2", "b")
    bench.want("r3", "c")
    bench.take()
    error = LlmrunError(SHUTTING_DOWN, "the daemon is shutting down")
    bench.book.close(error)
    assert bench.take() == [("refuse", "r2"), ("refuse", "r3"), ("stop", "a"), ("stop", "b")]
    bench.want("r4")
    assert bench.take() == [("refuse", "r4")]
    bench.release("r1")
    bench.book.gone("a", None)
    bench.book.gone("b", None)
    assert bench.take() == []
    assert bench.book.waiting == 0
