"""Pages of 2 MiB for weights that llama.cpp lays out anew (`llmrun.store.kernels`), where the system leaves
it to programs to ask for them. Those that stay in the mapped file lie in the page cache's pages.

A decoding step reads all weights, which in pages of 4 KiB means a walk through the page tables for each of
them. Many Linux systems give huge pages to who asks (`transparent_hugepage/enabled` is `madvise`). llama.cpp
does not ask, but glibc does in its place for what is allocated in large pieces, from version 2.35 on:
https://www.gnu.org/software/libc/manual/html_node/Memory-Allocation-Tunables.html

That is settled before a process begins. Once the weights are there it is better off. llama.cpp's compute
buffer is for the largest step there can be: huge pages would make more of it resident than steps touch. And a
KV cache is large, few of its cells are read, and a virtual machine may wait for huge pages of its host: 0.05
to 0.8 s for 380 MB, against 0.2 s in small ones.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from pathlib import Path

_WANTED = "glibc.malloc.hugetlb=1"
_TUNABLES = "GLIBC_TUNABLES"
_POLICY = Path("/sys/kernel/mm/transparent_hugepage")
_SIZE = 2 << 20  # bytes; on some systems a huge page has half a gigabyte, which small heaps would become
_PR_SET_THP_DISABLE = 41  # linux/prctl.h


def asking(environment: Mapping[str, str], policy: Path = _POLICY) -> dict[str, str]:
    """What a process that is to have huge pages needs in its environment beside `environment`."""
    settings = environment.get(_TUNABLES, "")
    if _WANTED.partition("=")[0] in settings or not _given_to_who_asks(policy):
        return {}
    return {_TUNABLES: ":".join(filter(None, (settings, _WANTED)))}


def no_more(environment: Mapping[str, str], policy: Path = _POLICY) -> None:
    """Memory that this process, which `asking` made ask, touches from now on comes in small pages; what it
    has stays as it is."""
    if _WANTED in environment.get(_TUNABLES, "") and _given_to_who_asks(policy):
        one, none = ctypes.c_ulong(1), ctypes.c_ulong(0)
        ctypes.CDLL(None).prctl(_PR_SET_THP_DISABLE, one, none, none, none)


def _given_to_who_asks(policy: Path) -> bool:
    try:
        size = int((policy / "hpage_pmd_size").read_text())
        return size == _SIZE and "[madvise]" in (policy / "enabled").read_text()
    except (OSError, ValueError):  # no Linux, or one without them
        return False
