"""What a download should bring: the words between transports and the downloader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

DENIED = "check the link, and whether it needs a login"


@dataclass(frozen=True)
class RangeSum:
    """The SHA-256 of bytes `start` to `end` (not included), as the source states it."""

    start: int
    end: int
    sha256: str


@dataclass(frozen=True)
class Wanted:
    """`size` and `sha256` are what the source promised, None where it promised nothing. `denied` says what
    to do when the server refuses access. `sums` asks the source for the sums of ranges of the file with that
    SHA-256 and size, and gives none where it has none; it is called only where the whole is wrong."""

    url: str
    size: int | None = None
    sha256: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    denied: str = DENIED
    sums: Callable[[str, int], tuple[RangeSum, ...]] | None = None
