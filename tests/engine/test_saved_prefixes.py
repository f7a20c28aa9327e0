from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmrun.engine.disk_prefixes import DiskPrefixes
from llmrun.engine.resident import Tokens, common_prefix
from llmrun.engine.saved_prefixes import SavedPrefixes

RUNS = st.lists(st.integers(0, 2), min_size=1, max_size=8).map(tuple)


def ids(run: tuple[int, ...] | range) -> np.ndarray:
    return np.array(run, np.int32)


def state(run: tuple[int, ...] | range, size: int = 100) -> bytes:
    return bytes(ids(run).tobytes()).ljust(size, b"\0")


def disk(tmp_path: Path, capacity: int = 10_000, key: str = "model", whole: bool = False) -> DiskPrefixes:
    return DiskPrefixes(tmp_path, key, capacity, whole=whole)


def reopened(tmp_path: Path, key: str = "model") -> DiskPrefixes:
    """A shelf that has read its folder: closed ones can still be asked."""
    shelf = disk(tmp_path, key=key)
    shelf.close()
    return shelf


def files(tmp_path: Path) -> list[Path]:
    return sorted(tmp_path.glob("*/*"))


def test_put_and_take_give_the_state_and_what_is_shared() -> None:
    saved = SavedPrefixes(1000)
    saved.put(ids(range(10)), state(range(10)))
    found = saved.find(ids((0, 1, 2, 9)))
    assert (found.shared, found.total) == (3, 10)
    assert saved.take(found) == state(range(10))
    assert saved.find(ids((5,))).shared == 0


def test_put_of_a_longer_run_replaces_its_beginnings() -> None:
    saved = SavedPrefixes(1000)
    saved.put(ids(range(5)), state(range(5)))
    saved.put(ids(range(9)), state(range(9)))
    saved.put(ids(range(7)), state(range(7)))
    assert saved.ram_bytes == 100


def test_put_of_what_cannot_be_cut_keeps_every_length() -> None:
    saved = SavedPrefixes(1000, whole=True)
    for length in (5, 9, 7):
        saved.put(ids(range(length)), state(range(length)))
    assert saved.ram_bytes == 300
    assert saved.find(ids(range(8))).total == 7


def test_ram_over_its_bound_drops_the_least_recently_used() -> None:
    saved = SavedPrefixes(250)
    saved.put(ids((1,)), state((1,)))
    saved.put(ids((2,)), state((2,)))
    saved.take(saved.find(ids((1,))))
    saved.put(ids((3,)), state((3,)))
    assert [saved.find(ids((n,))).shared for n in (1, 2, 3)] == [1, 0, 1]


def test_ram_over_its_bound_goes_to_disk_and_comes_back(tmp_path: Path) -> None:
    saved = SavedPrefixes(100, disk(tmp_path))
    saved.put(ids((1, 1)), state((1, 1)))
    saved.put(ids((2, 2)), state((2, 2)))
    saved.close()
    assert len(files(tmp_path)) == 2
    shelf = reopened(tmp_path)
    assert shelf.take(str(shelf.find(ids((1, 1, 5))).key)) == state((1, 1))


def test_disk_after_a_restart_finds_what_was_in_memory(tmp_path: Path) -> None:
    saved = SavedPrefixes(1000, disk(tmp_path))
    saved.put(ids(range(8)), state(range(8)))
    saved.close()
    again = SavedPrefixes(1000, reopened(tmp_path))
    found = again.find(ids((0, 1, 2, 3, 9)))
    assert (found.shared, found.total) == (4, 8)
    assert again.take(found) == state(range(8))


def test_disk_is_for_nobody_else_to_read(tmp_path: Path) -> None:
    """Prompts can be read off the tokens. An earlier version's folder was open to all."""
    (tmp_path / "model").mkdir(mode=0o755)
    before = os.umask(0o022)
    try:
        saved = SavedPrefixes(0, disk(tmp_path))
        saved.put(ids(range(5)), state(range(5)))
        saved.close()
    finally:
        os.umask(before)
    (file,) = files(tmp_path)
    assert file.stat().st_mode & 0o077 == 0
    assert file.parent.stat().st_mode & 0o077 == 0


def test_disk_of_another_key_is_not_looked_at(tmp_path: Path) -> None:
    shelf = disk(tmp_path)
    shelf.put(ids((1, 2)), state((1, 2)))
    shelf.close()
    assert reopened(tmp_path, "other").find(ids((1, 2))).shared == 0


@pytest.mark.parametrize("harm", ["flip", "cut", "head", "empty", "gone", "swap"])
def test_disk_file_that_is_damaged_is_a_miss_and_goes(tmp_path: Path, harm: str) -> None:
    shelf = disk(tmp_path)
    shelf.put(ids((1, 2)), state((1, 2)))
    shelf.put(ids((3, 4)), state((3, 4)))
    shelf.close()
    shelf = reopened(tmp_path)
    found = shelf.find(ids((1, 2)))
    path = tmp_path / "model" / str(found.key)
    data = path.read_bytes()
    other = next(p for p in files(tmp_path) if p != path).read_bytes()
    broken = {
        "flip": data[:-1] + b"\1",
        "cut": data[:-1],
        "head": b"X" + data[1:],
        "empty": b"",
        "swap": other,
    }
    if harm == "gone":
        path.unlink()
    else:
        path.write_bytes(broken[harm])
    assert shelf.take(str(found.key)) is None
    assert shelf.find(ids((1, 2))).shared == 0
    assert not path.exists()
    assert shelf.take(str(shelf.find(ids((3, 4))).key)) == state((3, 4))


def test_disk_file_that_is_none_is_removed_at_start(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "x.kv").write_bytes(b"no such thing")
    reopened(tmp_path)
    assert not files(tmp_path)


def test_disk_over_its_bound_drops_the_oldest_of_any_key(tmp_path: Path) -> None:
    for age, key in ((300, "a"), (100, "b")):
        shelf = disk(tmp_path, 400, key)
        shelf.put(ids((1, age)), state((1, age)))
        shelf.close()
        (file,) = (tmp_path / key).iterdir()
        os.utime(file, (1e9 - age, 1e9 - age))
    shelf = disk(tmp_path, 400, "b")
    shelf.put(ids((2, 2)), state((2, 2)))
    shelf.close()
    assert sum(path.stat().st_size for path in files(tmp_path)) <= 400
    assert {path.parent.name for path in files(tmp_path)} == {"b"}


def test_disk_longer_run_removes_the_file_of_its_beginning(tmp_path: Path) -> None:
    shelf = disk(tmp_path)
    shelf.put(ids(range(4)), state(range(4)))
    shelf.put(ids(range(6)), state(range(6)))
    shelf.close()
    assert len(files(tmp_path)) == 1
    assert shelf.find(ids(range(9))).total == 6


def test_disk_that_cannot_be_written_loses_prefixes_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "model").write_text("a file where the folder should be")
    shelf = disk(tmp_path)
    shelf.put(ids((1,)), state((1,)))
    shelf.close()
    assert shelf.find(ids((1,))).shared == 0


@given(st.lists(RUNS, max_size=10), RUNS, st.integers(0, 600), st.booleans())
def test_find_never_shares_what_does_not_match(
    runs: list[tuple[int, ...]], prompt: tuple[int, ...], ram: int, whole: bool
) -> None:
    saved = SavedPrefixes(ram, whole=whole)
    for run in runs:
        saved.put(ids(run), state(run))
        assert saved.ram_bytes <= ram
    found = saved.find(ids(prompt))
    if found.shared:
        kept = saved.take(found)
        assert kept is not None
        run = np.frombuffer(kept, np.int32)[: found.total]
        assert found.shared == common_prefix(ids(prompt), run)
        assert not whole or found.shared == found.total


def test_find_under_other_adapters_shares_nothing() -> None:
    saved = SavedPrefixes(1000)
    saved.put(ids(range(9)), state(range(9)), (1.0, 0.5))
    assert saved.find(ids(range(9)), (1.0, 0.25)).shared == 0
    found = saved.find(ids(range(5)), (1.0, 0.5))
    assert (found.shared, found.total) == (5, 9)


def test_persist_offers_each_prefix_in_host_memory_to_the_disk_once(tmp_path: Path) -> None:
    shelf = disk(tmp_path)
    shelf.ready.wait(10)
    saved = SavedPrefixes(1000, shelf)
    assert not saved.persist_one()
    saved.put(ids(range(10)), state(range(10)))
    saved.put(ids(range(20, 30)), state(range(20, 30)))
    offered = 0
    while saved.persist_one():
        offered += 1
    assert offered >= 2  # more where the writer was behind
    shelf.close()
    assert len(files(tmp_path)) == 2
    assert not saved.persist_one()


def test_put_of_what_host_memory_has_no_room_for_says_so() -> None:
    saved = SavedPrefixes(100)
    assert not saved.put(ids(range(10)), state(range(10), size=101))
    assert saved.put(ids(range(10)), state(range(10), size=100))
    assert saved.put(ids(range(5)), b"the longer one serves for it")


def test_file_that_cannot_be_written_costs_only_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write = DiskPrefixes._write

    def failing(self: DiskPrefixes, tokens: Tokens, content: bytes) -> None:
        if len(tokens) == 10:
            raise MemoryError("no room for a copy")
        write(self, tokens, content)

    monkeypatch.setattr(DiskPrefixes, "_write", failing)
    shelf = disk(tmp_path)
    shelf.put(ids(range(10)), state(range(10)), wait=True)
    shelf.put(ids(range(20, 32)), state(range(20, 32)), wait=True)
    shelf.close()
    assert len(files(tmp_path)) == 1
    assert "no room for a copy" in caplog.text
