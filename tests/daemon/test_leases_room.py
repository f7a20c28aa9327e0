"""The rules of which runner leaves for which: no processes, no sleeps."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from llmrun.errors import CONTEXT_TOO_LARGE
from llmrun.runner.frames import ModelInfo
from tests.daemon.bench import DIED, Bench
from tests.daemon.fakes import INFO, wanted


def test_full_house_stops_the_least_recently_used_idle_runner() -> None:
    bench = Bench(max_loaded=3)
    for name in "abc":
        bench.idle(name)
    bench.want("again")  # a is now the most recent
    bench.release("again")
    bench.take()
    bench.want("r", "d")
    assert bench.take() == [("stop", "b")]
    bench.book.gone("b", None)
    assert bench.take() == [("start", "d")]


def test_context_beyond_all_memory_is_refused_and_nobody_leaves() -> None:
    bench = Bench(max_loaded=2, available=1000)
    bench.idle("a")
    bench.idle("b")
    bench.take()
    bench.want("r", "a", ctx=10**9, cache=1000 + 2 * INFO.size + 2 * INFO.kv_bytes + 1)
    assert bench.take() == [("refuse", "r")]
    assert bench.effects.errors["r"].kind is CONTEXT_TOO_LARGE
    bench.want("r2", "a")
    assert bench.take() == [("grant", "r2")]


def test_context_that_has_room_once_others_leave_is_tried() -> None:
    bench = Bench(max_loaded=2, available=1000)
    bench.idle("a")
    bench.take()
    bench.want("r", "a", ctx=10**6, cache=1000 + INFO.size + INFO.kv_bytes)
    assert bench.take() == [("stop", "a")]


def test_full_house_spares_busy_runners_where_an_idle_one_is() -> None:
    bench = Bench(max_loaded=2)
    bench.load("old", "a")
    bench.idle("b")
    bench.take()
    bench.want("r", "c")
    assert bench.take() == [("stop", "b")]


def test_all_busy_the_request_waits_until_the_older_model_has_finished() -> None:
    bench = Bench(max_loaded=1)
    bench.load("r1", "a")
    bench.want("r2", "b")
    assert bench.take() == []
    bench.release("r1")
    assert bench.take() == [("stop", "a")]
    bench.book.gone("a", None)
    assert bench.take() == [("start", "b")]
    bench.book.ready("b", INFO)
    assert bench.take() == [("grant", "r2")]


def test_a_busy_model_cannot_starve_another() -> None:
    bench = Bench(max_loaded=1)
    bench.load("r1", "a")
    bench.want("r2", "b")
    bench.want("r3", "a")
    assert bench.take() == []
    bench.release("r1")
    bench.book.gone("a", None)
    bench.book.ready("b", INFO)
    assert bench.take() == [("stop", "a"), ("start", "b"), ("grant", "r2")]
    bench.release("r2")
    bench.book.gone("b", None)
    bench.book.ready("a", INFO)
    assert bench.take() == [("stop", "b"), ("start", "a"), ("grant", "r3")]


def test_a_model_that_must_leave_stays_when_the_other_request_is_withdrawn() -> None:
    bench = Bench(max_loaded=1)
    bench.load("r1", "a")
    bench.want("r2", "b")
    bench.want("r3", "a")
    bench.release("r2")
    assert bench.take() == [("grant", "r3")]


def test_loading_runner_nobody_waits_for_any_more_makes_room() -> None:
    bench = Bench(max_loaded=1)
    bench.want("r1", "a")
    bench.release("r1")
    bench.want("r2", "b")
    assert bench.take() == [("start", "a"), ("stop", "a")]


def test_loading_runner_serves_those_who_wait_before_it_leaves() -> None:
    bench = Bench(max_loaded=1)
    bench.want("r1", "a")
    bench.want("r2", "b")
    bench.want("r3", "a")
    bench.book.ready("a", INFO)
    assert bench.take() == [("start", "a"), ("grant", "r1")]
    bench.release("r1")
    assert bench.take() == [("stop", "a")]


def test_two_waiting_models_make_two_runners_leave() -> None:
    bench = Bench(max_loaded=2)
    bench.load("r1", "a")
    bench.load("r2", "b")
    bench.want("r3", "c")
    bench.want("r4", "d")
    bench.release("r2")
    assert bench.take() == [("stop", "b")]
    bench.release("r1")
    assert bench.take() == [("stop", "a")]
    bench.book.gone("b", None)
    assert bench.take() == [("start", "c")]
    bench.book.gone("a", None)
    assert bench.take() == [("start", "d")]


def test_auto_goes_by_memory() -> None:
    gib = 1024**3
    bench = Bench(max_loaded=None, available=16 * gib)
    bench.want("r1", "a", cost=13 * gib // 2)
    bench.want("r2", "b", cost=5 * gib)  # of 14.4 GiB
    assert bench.take() == [("start", "a"), ("start", "b")]
    bench.want("r3", "c", cost=5 * gib)
    assert bench.take() == []


def test_auto_lets_one_model_try_however_large() -> None:
    bench = Bench(max_loaded=None, available=10)
    bench.want("r1", "a", cost=1000)
    assert bench.take() == [("start", "a")]


def test_a_small_model_does_not_overtake_a_large_one_that_waits() -> None:
    gib = 1024**3
    bench = Bench(max_loaded=None, available=16 * gib)
    bench.want("r1", "a", cost=13 * gib // 2)
    bench.want("r2", "b", cost=25 * gib // 2)
    bench.want("r3", "c", cost=3 * gib)  # would fit beside a, not beside b
    assert bench.take() == [("start", "a")]
    bench.release("r1")
    bench.book.gone("a", None)
    assert bench.take() == [("stop", "a"), ("start", "b")]


def test_a_model_that_has_no_room_beside_an_older_wish_makes_nobody_leave() -> None:
    gib = 1024**3
    bench = Bench(max_loaded=None, available=16 * gib)
    bench.want("r1", "a", cost=13 * gib // 2)
    bench.load("r2", "b")
    bench.want("r3", "c", cost=25 * gib // 2)  # a leaves for it
    bench.want("r4", "d", cost=13 * gib // 2)
    bench.want("r5", "b")
    assert bench.take() == [("grant", "r5")]


@pytest.mark.parametrize("how", [{"version": "2"}, {"ctx": 8192}])
def test_runner_that_no_longer_fits_is_replaced_after_its_requests(how: dict[str, Any]) -> None:
    bench = Bench()
    bench.load("r1")
    bench.want("r2", **how)
    bench.want("r3")
    assert bench.take() == []
    bench.release("r1")
    bench.book.gone("a", None)
    assert bench.take() == [("stop", "a"), ("start", "a")]


@pytest.mark.parametrize(
    ("loaded", "asked"), [(None, 4096), (None, 512), (2048, 2048), (8192, None), (4096, 1024)]
)
def test_context_that_is_large_enough_serves(loaded: int | None, asked: int | None) -> None:
    bench = Bench()
    bench.want("r1", ctx=loaded)
    bench.book.ready("a", INFO if loaded is None else _with_ctx(loaded))
    bench.take()
    bench.want("r2", ctx=asked)
    assert bench.take() == [("grant", "r2")]


@pytest.mark.parametrize(("loaded", "asked"), [(512, None), (2048, 4096), (None, 4097)])
def test_context_that_is_too_small_is_loaded_anew(loaded: int | None, asked: int | None) -> None:
    bench = Bench()
    bench.want("r1", ctx=loaded)
    bench.book.ready("a", INFO if loaded is None else _with_ctx(loaded))
    bench.release("r1")
    bench.take()
    bench.want("r2", ctx=asked)
    bench.book.gone("a", None)
    assert bench.take() == [("stop", "a"), ("start", "a")]


def _with_ctx(ctx: int) -> ModelInfo:
    return msgspec.structs.replace(INFO, ctx=ctx)


def test_context_that_cannot_be_loaded_is_refused_to_those_alone_who_asked_for_it() -> None:
    bench = Bench()
    bench.book.want("greedy", wanted("a", ctx=2**31 - 1))
    bench.want("r1")
    bench.book.want("modest", wanted("a", ctx=1024))
    bench.book.gone("a", DIED)
    assert bench.take() == [("start", "a"), ("refuse", "greedy"), ("start", "a")]
    bench.book.ready("a", INFO)
    assert ("grant", "r1") in bench.take()
