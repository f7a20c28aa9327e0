"""What a transport gives the store: an `Offer`.

A transport is a module with one function, `offer(reference) -> Offer`, and a line in `__init__`. Its errors
are LlmrunErrors that say what to do next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from llmrun.store.progress import Meter


@dataclass(frozen=True)
class RemoteFile:
    """A file a source has; `size` and `sha256` as the source states them, None where it does not say.
    `url` is where its bytes are, empty where only the transport knows."""

    name: str
    size: int | None = None
    sha256: str | None = None
    url: str = ""


@dataclass(frozen=True)
class Fetched:
    """A file as it arrived: whole, and with the digest it has."""

    path: Path
    sha256: str


@dataclass(frozen=True)
class Offer:
    """What a source would give; asking for it may have cost a request, but fetched no weights.

    source  its reference in full, with the quant that was chosen
    files   bare names; one nameless file where only fetching tells (a wheel)
    name    how the model may be called; vendor: what tells it from others of that name
    why     one line on the choice, or empty
    here    the files where they already lie on this machine, to be used in place; else `fetch` gets them
    fetch   puts the files into a folder, which exists and may hold part of them from an earlier try
    """

    source: str
    files: tuple[RemoteFile, ...]
    name: str
    fetch: Callable[[Path, Meter], tuple[Fetched, ...]]
    vendor: str = ""
    why: str = ""
    here: tuple[Path, ...] = ()

    @property
    def size(self) -> int | None:
        """Bytes of all files, None where one is not known."""
        sizes = [file.size for file in self.files if file.size is not None]
        return sum(sizes) if len(sizes) == len(self.files) else None
