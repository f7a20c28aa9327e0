from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from llmrun.store.part import Part, Version


def test_gaps_are_what_no_extent_holds(tmp_path: Path) -> None:
    part = Part(tmp_path / "x")
    part.begin(Version('"a"', 100))
    part.put(10, b"a" * 10)
    part.put(40, b"b" * 20)
    assert list(part.gaps(100)) == [(0, 10), (20, 40), (60, 100)]
    assert part.size == 30


def test_part_opened_again_knows_what_it_had(tmp_path: Path) -> None:
    part = Part(tmp_path / "x")
    part.begin(Version('"a"', 8))
    part.put(4, b"bbbb")
    again = Part(tmp_path / "x")
    assert (again.version, again.extents, again.size) == (Version('"a"', 8), part.extents, 4)


def test_part_whose_file_is_shorter_than_its_journal_forgets_the_rest(tmp_path: Path) -> None:
    part = Part(tmp_path / "x")
    part.begin(Version(None, 8))
    part.put(0, b"aaaa")
    part.put(4, b"bbbb")
    with part.path.open("r+b") as file:
        file.truncate(6)
    assert [extent.start for extent in Part(tmp_path / "x").extents] == [0]


def test_put_while_comparing_keeps_what_is_the_same_and_takes_what_is_not(tmp_path: Path) -> None:
    part = Part(tmp_path / "x")
    part.begin(Version(None, 8))
    part.put(0, b"aaaabbbb")
    part.compare()
    assert not part.put(0, b"aaaa")
    assert part.put(4, b"bbXb")
    assert part.path.read_bytes() == b"aaaabbXb"
    assert list(part.gaps(8)) == []


def test_drop_forgets_every_extent_it_touches(tmp_path: Path) -> None:
    part = Part(tmp_path / "x")
    part.begin(Version(None, 12))
    for start in (0, 4, 8):
        part.put(start, b"aaaa")
    part.drop(3, 5)
    assert list(Part(tmp_path / "x").gaps(12)) == [(0, 8)]


@given(st.binary(max_size=300))
def test_load_any_journal_gives_extents_that_lie_apart_and_inside(
    tmp_path_factory: object, log: bytes
) -> None:
    folder = tmp_path_factory.mktemp("part")  # type: ignore[attr-defined]
    (folder / "x.part").write_bytes(bytes(50))
    line = b'{"validator":null,"total":50}\n0 10 ' + b"a" * 64 + b"\n5 10 " + b"b" * 64 + b"\n"
    (folder / "x.part.log").write_bytes(line + log)
    part = Part(folder / "x")
    at = 0
    for extent in part.extents:
        assert at <= extent.start <= extent.end <= 50
        at = extent.end
