from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from llmrun.huge_pages import asking

linux = pytest.mark.skipif(sys.platform != "linux", reason="transparent huge pages are Linux's")
POLICY = Path("/sys/kernel/mm/transparent_hugepage/enabled")

# Allocates twice 32 MiB, writes to them, and prints the huge pages that this process then has.
PROGRAM = """
import ctypes
import re
from pathlib import Path
from llmrun import huge_pages

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p

def write():
    ctypes.memset(libc.malloc(ctypes.c_size_t(32 << 20)), 1, 32 << 20)

def huge():
    return int(re.search(r"AnonHugePages: +(\\d+)", Path("/proc/self/smaps_rollup").read_text())[1]) >> 10

before = huge()
write()
asked = huge() - before
huge_pages.no_more()
write()
print(asked, huge() - before - asked)
"""


@linux
@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (None, {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}),
        ("glibc.malloc.check=0", {"GLIBC_TUNABLES": "glibc.malloc.check=0:glibc.malloc.hugetlb=1"}),
        ("glibc.malloc.hugetlb=0", {}),
    ],
)
def test_asking_keeps_the_tunables_that_are_set_and_a_choice_that_was_made(
    theirs: str | None, ours: dict[str, str]
) -> None:
    assert asking({} if theirs is None else {"GLIBC_TUNABLES": theirs}) == ours


def _on_request() -> bool:
    return POLICY.exists() and "[madvise]" in POLICY.read_text() and _glibc() >= (2, 35)


def _glibc() -> tuple[int, ...]:
    try:
        return tuple(map(int, re.findall(r"\d+", os.confstr("CS_GNU_LIBC_VERSION") or "")))
    except ValueError:
        return ()


@pytest.mark.skipif(
    not _on_request(), reason="this system has no huge pages for who asks, or no glibc that does"
)
def test_process_that_asks_has_huge_pages_until_it_wants_no_more() -> None:
    plain = {name: value for name, value in os.environ.items() if name != "GLIBC_TUNABLES"}

    def huge(**more: str) -> list[int]:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env={**plain, **more}, capture_output=True, text=True, check=True
        )
        return [int(word) for word in done.stdout.split()]

    asked, after = huge(**asking(plain))
    assert asked >= 28
    assert after < 4
    assert huge()[0] < 4
