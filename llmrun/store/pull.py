"""One pull: from what was asked for to a registered model.

The sources of a model are tried in order; one that fails (offline, no such file, wrong digest) gives way to
the next, with a note. Bytes that the store already has, under whatever name, are not fetched again. Two
pulls of the same bytes join: the second waits for the first and finds the work done. A model appears, as its
manifest does, when its files are verified and in place.
"""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from llmrun.errors import BAD_FILE, DIGEST, DISK, DOWNLOAD, LlmrunError
from llmrun.store.catalogue import Catalogue
from llmrun.store.disk import require_space, sha256_of
from llmrun.store.facts import Facts, read_facts
from llmrun.store.manifest import FileEntry, Manifest, now
from llmrun.store.modelfile import Modelfile
from llmrun.store.naming import short_name
from llmrun.store.progress import Meter
from llmrun.store.quants import split_label
from llmrun.store.reference import Reference, parse_name
from llmrun.store.shelf import Shelf
from llmrun.store.transports import Fetched, Offer, RemoteFile, offer_of

_WAITING = "another pull of the same file is under way; waiting for it"


@dataclass(frozen=True)
class Recipe:
    """What to pull. `reference` is what was asked for; `name` None means that the source decides."""

    reference: str
    modelfile: Modelfile
    name: str | None = None


@dataclass(frozen=True)
class _Files:
    """A model's files in their final place, and what their headers say."""

    entries: tuple[FileEntry, ...]
    facts: Facts


class Pull:
    def __init__(self, shelf: Shelf, catalogue: Catalogue, recipe: Recipe, meter: Meter) -> None:
        self.shelf, self.catalogue, self.recipe, self.meter = shelf, catalogue, recipe, meter
        self.pin = recipe.modelfile.sha256

    def run(self) -> Manifest:
        """The manifest of the model, which is there now."""
        failures = []
        for source in self.recipe.modelfile.sources:
            outcome = self._try(source)
            if isinstance(outcome, Manifest):
                return outcome
            failures.append((source, outcome))
        if len(failures) == 1:
            raise failures[0][1]
        reasons = ". ".join(f"{source}: {error}" for source, error in failures)
        raise LlmrunError(
            DOWNLOAD,
            f"no source of {self.recipe.reference} could be used. {reasons}",
            hint="check the connection, then pull again",
        )

    def _try(self, source: Reference) -> Manifest | LlmrunError:
        """The model from `source`, or why not. A full disk is no matter of the source and ends the pull."""
        try:
            return self._from(source)
        except LlmrunError as error:
            if error.kind is DISK:
                raise
            if len(self.recipe.modelfile.sources) > 1:
                self.meter.note(f"{source} failed: {error.message}")
            return error

    def _from(self, source: Reference) -> Manifest:
        offer = offer_of(source)
        self._check(offer.files[0].sha256, offer.size, str(source))
        if offer.why:
            self.meter.note(offer.why)
        key = self._key(offer)
        with self.shelf.key_lock(key, lambda: self.meter.note(_WAITING)):
            if files := self._already_here(offer) or self._in_place(offer):
                with self.shelf.lock():
                    return self._register(offer, files)
            staging = self.shelf.staging(key)
            fetched, facts = self._fetch(offer, staging)
            with self.shelf.lock():
                return self._register(offer, _Files(self.shelf.take_in(fetched, staging), facts))

    def _key(self, offer: Offer) -> str:
        """Names the pull of these bytes: the same for every source where the digest is known before."""
        digests = [file.sha256 or "" for file in offer.files]
        known = self.pin or ("".join(digests) if all(digests) else offer.source)
        return hashlib.sha256(known.encode()).hexdigest()[:16]

    def _already_here(self, offer: Offer) -> _Files | None:
        """The files of a stored model that has the very bytes; where no digest is known, the same source."""
        wanted = [file.sha256 for file in offer.files]
        for manifest in self.shelf.manifests.all():
            has = [entry.sha256 for entry in manifest.files]
            if self.pin:
                same = has[0] == self.pin
            else:
                same = has == wanted if all(wanted) else manifest.source == offer.source
            if same and self.shelf.whole(manifest):
                return _Files(manifest.files, manifest.facts)
        return None

    def _in_place(self, offer: Offer) -> _Files | None:
        """The files where they already lie on this machine, if they are what the source promised."""
        if not offer.here:
            return None
        entries = []
        self.meter.expect(offer.size)
        for file, path in zip(offer.files, offer.here, strict=True):
            if file.sha256 and self._digest(file, path) != file.sha256:
                self.meter.note(f"{path} is damaged and is fetched anew")
                return None
            self.meter.file_done(file.size or 0)
            entries.append(self.shelf.manifests.entry(path, file.sha256))
        return _Files(tuple(entries), read_facts(offer.here))

    def _digest(self, file: RemoteFile, path: Path) -> str:
        return sha256_of(path, lambda done: self.meter.at(file.name, done, file.size, "verify"))

    def _fetch(self, offer: Offer, staging: Path) -> tuple[tuple[Fetched, ...], Facts]:
        """The files, whole and what they should be, in `staging`. What is not as promised is not kept."""
        size = offer.size or self.recipe.modelfile.size
        self.meter.expect(size)
        if size:
            there = sum(path.stat().st_size for path in staging.iterdir() if path.is_file())
            require_space(staging, size - there)
        try:
            fetched = offer.fetch(staging, self.meter)
            length = sum(file.path.stat().st_size for file in fetched)
            self._check(fetched[0].sha256, length, offer.source)
            return fetched, read_facts([file.path for file in fetched])
        except LlmrunError as error:
            if error.kind in (DIGEST, BAD_FILE):
                shutil.rmtree(staging)
            raise

    def _check(self, sha256: str | None, size: int | None, source: str) -> None:
        """DIGEST where a source says, or gave, other bytes than the Modelfile pins."""
        pinned = self.recipe.modelfile
        if sha256 and pinned.sha256 not in (None, sha256):
            raise LlmrunError(DIGEST, f"{source} has the SHA-256 {sha256}, not {pinned.sha256}", hint="")
        if size is not None and pinned.size not in (None, size):
            raise LlmrunError(DIGEST, f"{source} has {size} bytes, not {pinned.size}", hint="")

    def _register(self, offer: Offer, files: _Files) -> Manifest:
        """Write the manifest; the files of the one it replaces go where nothing else uses them."""
        manifests, modelfile = self.shelf.manifests, self.recipe.modelfile
        name = self.recipe.name or self._name(offer, Path(files.entries[0].path).name)
        old = manifests.readable(name)
        manifest = Manifest(
            name=name,
            reference=self.recipe.reference,
            source=offer.source,
            created=now(),
            files=files.entries,
            facts=files.facts,
            options=modelfile.options,
            system=modelfile.system,
            template=modelfile.template,
            messages=modelfile.messages,
            license=modelfile.license,
        )
        manifests.put(manifest)
        if old:
            self.shelf.drop(old)
        return manifest

    def _name(self, offer: Offer, file: str) -> str:
        """The name this very reference got before, else a fresh one."""
        for manifest in self.shelf.manifests.all():
            if manifest.reference == self.recipe.reference:
                return manifest.name
        model, quant = split_label(file)
        wanted = offer.name or (f"{model}:{quant}" if quant else model)
        return short_name(wanted, offer.vendor, self._taken)

    def _taken(self, name: str) -> bool:
        if self.catalogue.find(parse_name(name)):
            return True
        return self.shelf.manifests.exists(name)
