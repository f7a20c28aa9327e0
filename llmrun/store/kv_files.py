"""The files that hold saved KV prefixes: how they are laid out, where they lie, and whether one is whole.

MAGIC, a little-endian `uint32` checksum (CRC-32 of all that follows), `uint32` count of tokens, the tokens
(`int32` each), then the KV as llama.cpp wrote it. One folder per model and settings, below one root.
`llmrun.engine.disk_prefixes` writes and reads them.
"""

from __future__ import annotations

import contextlib
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MAGIC = b"llmrun KV prefix 1\n"
SUFFIX = ".kv"
HEAD = struct.Struct(f"<{len(MAGIC)}sII")
_BLOCK = 1 << 20


class KVFile(NamedTuple):
    """A file of the cache; `used` is when it was last (unix seconds)."""

    used: float
    size: int
    path: Path


def kv_files(root: Path) -> Iterator[KVFile]:
    """Every file of the cache, whichever model it is for."""
    for path in root.glob("*/*" + SUFFIX):
        with contextlib.suppress(OSError):  # a runner removed it
            found = path.stat()
            yield KVFile(found.st_mtime, found.st_size, path)


def is_whole(path: Path) -> bool:
    """Whether the file has the checksum that it says. One that is gone by now is no damage."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD.size)
            if len(head) < HEAD.size or not head.startswith(MAGIC):
                return False
            _, wanted, _ = HEAD.unpack(head)
            checksum = zlib.crc32(head[len(MAGIC) + 4 :])
            while block := file.read(_BLOCK):
                checksum = zlib.crc32(block, checksum)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return checksum == int(wanted)
