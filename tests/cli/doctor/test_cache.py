from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pytest

from llmrun.cli.doctor.cache import check_cache
from llmrun.engine.disk_prefixes import DiskPrefixes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two prefixes, as a runner keeps them."""
    prefixes = DiskPrefixes(tmp_path / "kv", "model", 10_000)
    for number in (1, 2):
        prefixes.put(np.arange(100, dtype=np.int32) * number, b"KV" * 500, wait=True)
    prefixes.close()
    return tmp_path / "kv"


def test_whole_files_are_counted_against_their_bound(folder: Path) -> None:
    (finding,) = check_cache(folder, 10_000)
    assert (finding.level, finding.text) == ("ok", "2 prefixes on disk, 2.9 kB, at most 10.0 kB")
    assert "sized to the disk" in check_cache(folder, None)[0].text


def test_damaged_and_cut_files_are_named(folder: Path) -> None:
    one, two = sorted(folder.glob("*/*.kv"))
    data = bytearray(one.read_bytes())
    data[-1] ^= 1
    one.write_bytes(data)
    two.write_bytes(b"llmrun")
    found = check_cache(folder, None)[1]
    assert (found.level, found.text.startswith("2 of them are damaged")) == ("warning", True)
    assert sorted(shlex.split(found.mend)) == sorted(["rm", str(one), str(two)])


def test_more_than_the_bound_is_a_warning(folder: Path) -> None:
    assert [finding.level for finding in check_cache(folder, 2000)] == ["ok", "warning"]


def test_no_cache_yet_and_none_wanted(tmp_path: Path) -> None:
    assert check_cache(tmp_path, None)[0].text.startswith("0 prefixes")
    assert "off" in check_cache(tmp_path, 0)[0].text
