"""A file while it is being fetched: `NAME.part` and, beside it, the journal `NAME.part.log`.

The journal's first line says which file it is (its version and length, as the server stated them); every
further line is an extent that was written: where it starts, how long it is, its SHA-256. A line is written
after its bytes, so what the journal holds after a kill or a reboot can be checked against the disk, and what
it does not hold is fetched again. Knows no network. One thread uses it; the caller holds the pull's lock.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from llmrun.store.disk import BLOCK, sha256_of, write_atomic

_LINE = re.compile(r"(\d{1,19}) (\d{1,19}) ([0-9a-f]{64})")


@dataclass(frozen=True)
class Extent:
    """Bytes `start` to `end` (not included) of the file, and their digest."""

    start: int
    end: int
    sha256: str


class Version(msgspec.Struct, frozen=True):
    """What the server said of the file: a validator for `If-Range`, and the length."""

    validator: str | None = None
    total: int | None = None


class Part:
    """Extents never overlap. `version` is that of the bytes which are there."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.path = target.with_name(f"{target.name}.part")
        self.log = target.with_name(f"{target.name}.part.log")
        self.version = Version()
        self._extents: dict[int, Extent] = {}
        self._compared: dict[int, Extent] | None = None
        self.size = 0  # bytes that are there
        self._load()

    @property
    def comparing(self) -> bool:
        return self._compared is not None

    @property
    def extents(self) -> list[Extent]:
        """What is there, in order."""
        return _in_order(self._extents)

    def gaps(self, total: int) -> Iterator[tuple[int, int]]:
        """What of `total` bytes is missing, as (start, end), in order; while comparing: what was not yet
        compared."""
        at = 0
        for extent in self.extents if self._compared is None else _in_order(self._compared):
            if extent.start > at:
                yield at, extent.start
            at = max(at, extent.end)
        if at < total:
            yield at, total

    def begin(self, version: Version) -> None:
        """The bytes to come are of `version`; called when the part is empty or of the same version."""
        if version != self.version or not self.log.exists():
            self.version = version
            self._write_log()

    def put(self, start: int, data: bytes) -> bool:
        """Write `data`, record it, and say whether it changed anything that was there already."""
        if not data:
            return False
        extent = Extent(start, start + len(data), hashlib.sha256(data).hexdigest())
        if self._compared is not None:
            self._compared[start] = extent
            if self._read(start, len(data)) == data:
                return False
            self._forget(extent)
        self._write(start, data)
        self._extents[start] = extent
        self.size += len(data)
        with self.log.open("a") as file:
            file.write(f"{start} {len(data)} {extent.sha256}\n")
        return True

    def compare(self) -> None:
        """From now on `gaps` and `put` go over the whole file again, and keep what is the same."""
        self._compared = self._compared or {}

    def damaged(self) -> list[Extent]:
        """The extents whose bytes on the disk are not those that were written."""
        return [e for e in self.extents if _digest(self._read(e.start, e.end - e.start)) != e.sha256]

    def drop(self, start: int, end: int) -> None:
        """Forget the extents that touch `start` to `end`, so that they are fetched again."""
        self._forget(Extent(start, end, ""))
        self._write_log()

    def digest(self, on_read: Callable[[int], None]) -> str:
        """The SHA-256 of the file as it lies on the disk."""
        return sha256_of(self.path, on_read)

    def range_digest(self, start: int, end: int) -> str:
        digest = hashlib.sha256()
        for at in range(start, end, BLOCK):
            digest.update(self._read(at, min(BLOCK, end - at)))
        return digest.hexdigest()

    def finish(self) -> None:
        """Make the part the target, on the disk for good."""
        with self.path.open("rb") as file:
            os.fsync(file.fileno())
        self.path.replace(self.target)
        self.log.unlink(missing_ok=True)

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)
        self.log.unlink(missing_ok=True)
        self.version, self._extents, self._compared, self.size = Version(), {}, None, 0

    def _load(self) -> None:
        """Read the journal, without lines that a crash spoilt and without what the file is too short for."""
        try:
            first, *lines = self.log.read_text("utf-8", "replace").split("\n")
            self.version = msgspec.json.decode(first, type=Version)
            length = self.path.stat().st_size
        except (FileNotFoundError, msgspec.DecodeError):
            self.discard()
            return
        at = 0
        found = (
            Extent(int(m[1]), int(m[1]) + int(m[2]), m[3]) for line in lines if (m := _LINE.fullmatch(line))
        )
        # A later line tells of a later write: sorting is stable, so the last of equals stands.
        latest = {extent.start: extent for extent in found if extent.end <= length}
        for extent in sorted(latest.values(), key=lambda extent: extent.start):
            if extent.start >= at:
                self._extents[extent.start] = extent
                self.size += extent.end - extent.start
                at = extent.end
        self._write_log()

    def _write_log(self) -> None:
        lines = [msgspec.json.encode(self.version).decode()]
        lines += [f"{e.start} {e.end - e.start} {e.sha256}" for e in self.extents]
        write_atomic(self.log, ("\n".join(lines) + "\n").encode())

    def _forget(self, other: Extent) -> None:
        for extent in self.extents:
            if extent.start < other.end and other.start < extent.end:
                del self._extents[extent.start]
                self.size -= extent.end - extent.start

    def _read(self, start: int, count: int) -> bytes:
        with self.path.open("rb") as file:
            file.seek(start)
            return file.read(count)

    def _write(self, start: int, data: bytes) -> None:
        with self.path.open("r+b" if self.path.exists() else "wb", buffering=0) as file:
            file.seek(start)
            view = memoryview(data)
            while view:
                view = view[file.write(view) or 0 :]


def _in_order(extents: dict[int, Extent]) -> list[Extent]:
    return sorted(extents.values(), key=lambda extent: extent.start)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
