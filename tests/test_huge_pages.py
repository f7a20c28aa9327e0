from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from llmrun.huge_pages import asking

POLICY = Path("/sys/kernel/mm/transparent_hugepage")

# Writes to 32 MiB, wants no more huge pages, and writes to 32 others. Prints whether the first were asked for
# in huge pages (the flag `hg` of their mapping), and how many MiB of huge pages the second added.
PROGRAM = r"""
import ctypes
import os
import re
from pathlib import Path
from llmrun import huge_pages

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p

def write():
    at = libc.malloc(ctypes.c_size_t(32 << 20))
    ctypes.memset(at, 1, 32 << 20)
    return at

def asked(at):
    for each in re.split(r"\n(?=[0-9a-f]+-)", Path("/proc/self/smaps").read_text()):
        start, end = (int(word, 16) for word in each.split(maxsplit=1)[0].split("-"))
        if start <= at < end:
            return int(" hg" in each.rpartition("VmFlags:")[2])

def huge():
    return int(re.search(r"AnonHugePages: +(\d+)", Path("/proc/self/smaps_rollup").read_text())[1]) >> 10

first, before = write(), huge()
huge_pages.no_more(os.environ)
write()
print(asked(first), huge() - before)
"""


def policy(folder: Path, enabled: str = "always [madvise] never", size: int = 2 << 20) -> Path:
    (folder / "enabled").write_text(enabled)
    (folder / "hpage_pmd_size").write_text(f"{size}\n")
    return folder


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (None, {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}),
        ("glibc.malloc.check=0", {"GLIBC_TUNABLES": "glibc.malloc.check=0:glibc.malloc.hugetlb=1"}),
        ("glibc.malloc.hugetlb=0", {}),
    ],
)
def test_asking_keeps_the_tunables_that_are_set_and_a_choice_that_was_made(
    tmp_path: Path, theirs: str | None, ours: dict[str, str]
) -> None:
    assert asking({} if theirs is None else {"GLIBC_TUNABLES": theirs}, policy(tmp_path)) == ours


@pytest.mark.parametrize(
    ("enabled", "size"),
    [
        ("[always] madvise never", 2 << 20),
        ("always madvise [never]", 2 << 20),
        ("always [madvise] never", 512 << 20),
    ],
)
def test_asking_where_it_would_gain_nothing_or_take_much_more_asks_for_nothing(
    tmp_path: Path, enabled: str, size: int
) -> None:
    assert asking({}, policy(tmp_path, enabled, size)) == {}


def test_asking_without_such_pages_asks_for_nothing(tmp_path: Path) -> None:
    assert asking({}, tmp_path / "none") == {}


def _glibc() -> tuple[int, ...]:
    try:
        return tuple(map(int, re.findall(r"\d+", os.confstr("CS_GNU_LIBC_VERSION") or "")))
    except (AttributeError, ValueError):
        return ()


@pytest.mark.skipif(
    not asking({}) or _glibc() < (2, 35), reason="no huge pages for who asks here, or no glibc that does"
)
def test_process_that_asks_has_huge_pages_until_it_wants_no_more() -> None:
    plain = {name: value for name, value in os.environ.items() if name != "GLIBC_TUNABLES"}

    def written(**more: str) -> list[int]:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env={**plain, **more}, capture_output=True, text=True, check=True
        )
        return [int(word) for word in done.stdout.split()]

    assert written(**asking(plain)) == [1, 0]
    assert written()[0] == 0
