from __future__ import annotations

from llmrun.daemon.room import Room, available_memory, real_cost
from tests.daemon.fakes import INFO


def test_fits_by_count_where_one_is_set() -> None:
    room = Room(2, lambda: 0)
    assert room.fits([10**12], 10**12)
    assert not room.fits([1, 1], 1)


def test_fits_by_bytes_of_the_budget() -> None:
    room = Room(None, lambda: 1000)
    room.measure()
    assert room.fits([400], 500)
    assert not room.fits([401], 500)


def test_fits_alone_always() -> None:
    assert Room(None, lambda: 0).fits([], 10**15)


def test_real_cost_is_weights_and_cache() -> None:
    assert real_cost(INFO) == INFO.size + INFO.kv_bytes


def test_available_memory_is_told() -> None:
    assert available_memory() > 0
