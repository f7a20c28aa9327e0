"""What in the models folder no model needs, and whether what models need is whole.

Every byte there belongs to a listed model, to a pull or quantisation under way (which holds its lock), or is
litter: what an interrupted pull left, files that no manifest names, temporary files. `litter` names all of it
with its size as the disk counts it, `prune` deletes it. Both hold the store's lock, so nothing is
between two places meanwhile.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from llmrun.config import Paths
from llmrun.errors import BAD_FILE, LlmrunError
from llmrun.store.disk import sha256_of, size_of, writing
from llmrun.store.gguf import read_header
from llmrun.store.manifest import FileEntry
from llmrun.store.progress import Meter, PullProgress
from llmrun.store.shelf import Shelf

Kind = Literal["partial", "orphan", "temporary"]
State = Literal["ok", "missing", "size", "damaged"]
UNIT = 512  # of st_blocks


@dataclass(frozen=True)
class Litter:
    """A file or folder that nothing needs; `size` is what the disk gets back."""

    path: Path
    kind: Kind
    size: int


@dataclass(frozen=True)
class Check:
    """One file of a model. state: `size` and `damaged` mean other bytes than were pulled. `digest` tells
    whether all bytes were compared; of files used in place only the header is."""

    model: str
    path: Path
    state: State
    digest: bool


class Housekeeper:
    """Looks after one models folder. Any thread and process; nothing is created where there is no folder."""

    def __init__(self, paths: Paths) -> None:
        self._shelf = Shelf(paths.models)

    def litter(self) -> list[Litter]:
        """All that could go, the largest first. BAD_FILE where a damaged manifest hides what it uses."""
        if not self._shelf.models.is_dir():
            return []
        with writing(self._shelf.models), self._shelf.lock():
            return _found(self._shelf)

    def prune(self) -> list[Litter]:
        """Delete what `litter` finds; what was deleted."""
        if not self._shelf.models.is_dir():
            return []
        with writing(self._shelf.models), self._shelf.lock():
            found = _found(self._shelf)
            for one in found:
                if one.path.is_dir() and not one.path.is_symlink():
                    shutil.rmtree(one.path)
                else:
                    one.path.unlink()
        return found

    def verify(
        self, name: str | None = None, *, on_progress: Callable[[PullProgress], None] | None = None
    ) -> list[Check]:
        """The state of every file of the model whose full name is `name`, or of all models; all bytes are
        read where a digest is known. BAD_FILE where a manifest is damaged."""
        manifests = self._shelf.manifests
        names = manifests.names() if name is None else [name]
        wanted = [
            (manifest, entry) for one in names if (manifest := manifests.get(one)) for entry in manifest.files
        ]
        meter = Meter(on_progress)
        meter.expect(sum(entry.size for _, entry in wanted))
        found = []
        for manifest, entry in wanted:
            found.append(_check(self._shelf.path(entry), manifest.name, entry, meter))
            meter.file_done(entry.size)
        return found


def disk_size(path: Path) -> int:
    """Bytes that `path` and all below it take up on the disk, as `du` counts."""
    size = path.lstat().st_blocks * UNIT
    if path.is_dir() and not path.is_symlink():
        size += sum(child.lstat().st_blocks * UNIT for child in path.rglob("*"))
    return size


def _check(path: Path, model: str, entry: FileEntry, meter: Meter) -> Check:
    if (size := size_of(path)) is None:
        return Check(model, path, "missing", digest=False)
    if size != entry.size:
        return Check(model, path, "size", digest=False)
    if entry.sha256:
        same = sha256_of(path, lambda done: meter.at(path.name, done, entry.size, "verify")) == entry.sha256
        return Check(model, path, "ok" if same else "damaged", digest=True)
    try:
        read_header(path)
    except LlmrunError as error:
        if error.kind is not BAD_FILE:
            raise
        return Check(model, path, "damaged", digest=False)
    return Check(model, path, "ok", digest=False)


def _found(shelf: Shelf) -> list[Litter]:
    return sorted(_litter(shelf), key=lambda one: (-one.size, one.path))


def _litter(shelf: Shelf) -> Iterator[Litter]:
    dead = shelf.dead_steps()
    used = shelf.manifests.used_files(without=dead)
    if used is None:
        raise LlmrunError(
            BAD_FILE,
            "a damaged manifest hides which files its model uses",
            hint="llmrun verify names it; llmrun rm it, then prune",
        )
    for folder in _children(shelf.partial):
        if not shelf.under_way(folder.name):
            yield Litter(folder, "partial", disk_size(folder))
    for folder in _children(shelf.models / "files"):
        yield from _unused(folder, used)
    for file in _children(shelf.models / "blobs"):
        if file.name.startswith("."):
            yield Litter(file, "temporary", disk_size(file))
        elif file not in used:
            yield Litter(file, "orphan", disk_size(file))
    steps = {shelf.manifests.path(step) for step in dead}
    for file in _children(shelf.models / "manifests"):
        if file.suffix == ".tmp" or file in steps:  # a writer of the first held the lock that is ours now
            yield Litter(file, "temporary", disk_size(file))


def _unused(folder: Path, used: set[Path]) -> Iterator[Litter]:
    """The folder as a whole where no model uses a file of it, else those of its files that none does."""
    if folder.is_dir() and not folder.is_symlink() and any(path in used for path in folder.rglob("*")):
        for file in _children(folder):
            if file not in used:
                yield from _unused(file, used)
    elif folder not in used:
        yield Litter(folder, "orphan", disk_size(folder))


def _children(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []
