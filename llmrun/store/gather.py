"""The files of one offer: found on this machine as far as they are here, fetched as far as they are not.

A file that a stored model has, or that another program keeps where the source says, is used where it lies
once its digest is right. What is fetched is collected in a staging folder, verified, and moved to its place
in one step with the manifest that names it.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from llmrun.errors import BAD_FILE, DIGEST, LlmrunError
from llmrun.store.disk import on_disk, require_space, sha256_of
from llmrun.store.facts import Facts
from llmrun.store.inspecting import inspect
from llmrun.store.manifest import FileEntry, Manifest
from llmrun.store.modelfile import Modelfile
from llmrun.store.progress import Meter
from llmrun.store.shelf import Shelf
from llmrun.store.transports import Fetched, Offer, RemoteFile
from llmrun.store.transports.base import own, total

_WAITING = "another pull of the same file is under way; waiting for it"


@dataclass(frozen=True)
class Gathered:
    """A model's files in their final place, and what their headers say."""

    entries: tuple[FileEntry, ...]
    facts: Facts


class Gather:
    """`pinned` says which bytes the weights must be, where it says so."""

    def __init__(self, shelf: Shelf, meter: Meter, pinned: Modelfile) -> None:
        self.shelf, self.meter, self.pinned = shelf, meter, pinned

    def run(self, offer: Offer, register: Callable[[Gathered], Manifest]) -> Manifest:
        """What `register` makes of the files; it is called under the store's lock, and they are there."""
        self.check(offer.files[0].sha256, total(own(offer.files)), offer.source)
        key = self.key(offer)
        with self.shelf.key_lock(key, self._joined(offer, key)):
            while True:
                if manifest := self._from_here(offer, register):
                    return manifest
                if manifest := self._from_there(offer, register, key):
                    return manifest

    def _joined(self, offer: Offer, key: str) -> Callable[[], None]:
        """What to do while another pull of the same weights has the lock: to say so once, then to report how
        far it is."""
        told: list[str] = []

        def report() -> None:
            if not told:
                told.append(_WAITING)
                self.meter.note(_WAITING)
            done, size = on_disk(self.shelf.partial / key), offer.size or self.pinned.size
            self.meter.at(offer.files[0].name, done if size is None else min(done, size), size)

        return report

    def check(self, sha256: str | None, size: int | None, source: str) -> None:
        """DIGEST where a source says, or gave, other bytes than the Modelfile pins."""
        if sha256 and self.pinned.sha256 not in (None, sha256):
            raise LlmrunError(DIGEST, f"{source} has the SHA-256 {sha256}, not {self.pinned.sha256}", hint="")
        if size is not None and self.pinned.size not in (None, size):
            raise LlmrunError(DIGEST, f"{source} has {size} bytes, not {self.pinned.size}", hint="")

    def held_quickly(self, offer: Offer) -> set[RemoteFile]:
        """The files of which the bytes seem to be here, by digest or place; nothing is read for it."""
        stored = {entry.sha256 for entry in self._stored() if entry.sha256}
        return {file for file in offer.files if file.here or self._digest_of(file, offer) in stored}

    def _digest_of(self, file: RemoteFile, offer: Offer) -> str | None:
        """The digest that `file` must have, where source or Modelfile say."""
        return file.sha256 or (self.pinned.sha256 if file == offer.files[0] else None)

    def key(self, offer: Offer) -> str:
        """Names the pull of these weights: the same for every source where the digest is known before."""
        known = self.pinned.sha256 or offer.files[0].sha256 or offer.source
        return hashlib.sha256(known.encode()).hexdigest()[:16]

    def _from_here(self, offer: Offer, register: Callable[[Gathered], Manifest]) -> Manifest | None:
        """The model over the files of a stored one that is of the very bytes; where no digest is known, of
        the same source."""
        wanted = [file.sha256 for file in own(offer.files)]
        if len(wanted) < len(offer.files):
            return None  # what is named apart is found file by file
        with self.shelf.lock():
            for manifest in self.shelf.manifests.all():
                has = [entry.sha256 for entry in manifest.files]
                if any(entry.source for entry in manifest.files) or len(has) != len(wanted):
                    continue
                if self.pinned.sha256:
                    same = has[0] == self.pinned.sha256
                else:
                    same = has == wanted if all(wanted) else manifest.source == offer.source
                if same and self.shelf.whole(manifest):
                    return register(Gathered(manifest.files, manifest.facts))
        return None

    def _from_there(
        self, offer: Offer, register: Callable[[Gathered], Manifest], key: str
    ) -> Manifest | None:
        """The model over files that are fetched as far as none is here. None: one that was here has gone."""
        self.meter.expect(offer.size or self.pinned.size)
        held = {file: entry for file in offer.files if (entry := self._held(file, offer))}
        missing = tuple(file for file in offer.files if file not in held)
        places = {file: self.shelf.path(entry) for file, entry in held.items()}
        fetched: tuple[Fetched, ...] = ()
        staging = self.shelf.staging(key) if missing else None
        if staging:
            fetched = self._fetch(offer, missing, staging)
        try:
            arrived = {file: got.path for file, got in zip(missing, fetched, strict=True)}
            facts = inspect([((places | arrived)[file], file.role) for file in offer.files])
        except LlmrunError:
            if _any_gone(places.values()):
                return None
            if staging:
                shutil.rmtree(staging)
            raise
        with self.shelf.lock():
            if _any_gone(places.values()):
                return None
            taken = iter(self.shelf.take_in(fetched, staging) if staging else ())
            entries = tuple(
                msgspec.structs.replace(held.get(file) or next(taken), role=file.role, source=file.source)
                for file in offer.files
            )
            return register(Gathered(entries, facts))

    def _held(self, file: RemoteFile, offer: Offer) -> FileEntry | None:
        """Where the file already lies on this machine, if it is what the source promised."""
        digest = self._digest_of(file, offer)
        for entry in self._stored():
            same_source = file.source and file.source == entry.source and not file.here
            if entry.sha256 == digest if digest else same_source:
                self.meter.file_done(entry.size)
                return entry
        return self._lying(file.here, file) if file.here else None

    def _lying(self, path: Path, file: RemoteFile) -> FileEntry | None:
        """The file at `path`, where it is there and what the source promised."""
        try:
            entry = self.shelf.manifests.entry(path, file.sha256, file.role)
            sound = not file.sha256 or self._digest(file, path) == file.sha256
        except FileNotFoundError:
            return None
        if not sound:
            self.meter.note(f"{path} is damaged and is fetched anew")
            return None
        self.meter.file_done(file.size or 0)
        return entry

    def _stored(self) -> Iterator[FileEntry]:
        """The files of all models that are whole."""
        for manifest in self.shelf.manifests.all():
            if self.shelf.whole(manifest):
                yield from manifest.files

    def _digest(self, file: RemoteFile, path: Path) -> str:
        return sha256_of(path, lambda done: self.meter.at(file.name, done, file.size, "verify"))

    def _fetch(self, offer: Offer, missing: tuple[RemoteFile, ...], staging: Path) -> tuple[Fetched, ...]:
        """The files, whole and what they should be, in `staging`. What is not as promised is not kept."""
        if size := total(missing) or self.pinned.size:
            require_space(staging, size - on_disk(staging))
        try:
            fetched = offer.fetch(missing, staging, self.meter)
            ours = own(offer.files)
            if missing[: len(ours)] == ours:
                length = sum(file.path.stat().st_size for file in fetched[: len(ours)])
                self.check(fetched[0].sha256, length, offer.source)
            for file, got in zip(missing, fetched, strict=True):
                if file.sha256 not in (None, got.sha256):
                    raise LlmrunError(
                        DIGEST, f"{file.name} has the SHA-256 {got.sha256}, not {file.sha256}", hint=""
                    )
        except LlmrunError as error:
            if error.kind in (DIGEST, BAD_FILE):
                shutil.rmtree(staging)
            raise
        return fetched


def _any_gone(places: Iterable[Path]) -> bool:
    """Whether a model that had one of the files was removed meanwhile."""
    return not all(path.is_file() for path in places)
