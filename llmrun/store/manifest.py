"""What the store remembers of a model: one JSON file a name, in `models/manifests`.

The file name is the model's with `/` written `+` and `:` written `@`, neither of which a name may hold: names
and files match one to one, all lie in one folder, and none can lead out of it. A manifest is written last,
when its files are verified and in place, and atomically, so a reader sees a whole one or none.

Paths in a manifest are relative to the models folder where the store owns the file, else absolute.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated

import msgspec

from llmrun.errors import BAD_FILE, CONFLICT, LlmrunError
from llmrun.log import ROOT
from llmrun.store.companions import Role
from llmrun.store.disk import refused, write_atomic
from llmrun.store.facts import Facts, read_facts
from llmrun.store.steps import is_step
from llmrun.types import Message, Options

_LOG = ROOT.getChild("store")


class FileEntry(msgspec.Struct, frozen=True, kw_only=True):
    """`modified` is the file's own time in nanoseconds: with the size it tells whether `facts` still hold.
    `role`: what the file is to the model. `source`: the reference that it came by, where a Modelfile named it
    apart from the weights."""

    path: str
    size: int
    modified: int
    sha256: str | None
    role: Role = "weights"
    source: str = ""

    @property
    def in_place(self) -> bool:
        """Whether the file lies outside the store, which then never moves or deletes it."""
        return Path(self.path).is_absolute()


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """reference: what was asked for; source: where the bytes came from; sources: all
    places of the same bytes, where a Modelfile names several; files: the weights in order, then
    what belongs to them; options, system, template, messages, license: the Modelfile's, empty where it is
    silent; facts: what the weights' GGUF says."""

    name: str
    reference: str
    source: str
    created: datetime
    files: Annotated[tuple[FileEntry, ...], msgspec.Meta(min_length=1)]
    facts: Facts
    options: Options = Options()
    system: str | None = None
    template: str | None = None
    messages: tuple[Message, ...] = ()
    license: str = ""
    sources: tuple[str, ...] = ()
    version: int = 1


def now() -> datetime:
    return datetime.now(timezone.utc).replace(microsecond=0)


class Manifests:
    """The manifests under `models`, a folder that need not exist. Reading takes no lock; writers hold the
    store's."""

    def __init__(self, models: Path) -> None:
        self._models = models
        self._folder = models / "manifests"

    def path(self, name: str) -> Path:
        """Where the manifest of `name` is, if there is one."""
        return self._folder / f"{name.replace('/', '+').replace(':', '@')}.json"

    def names(self) -> list[str]:
        """Every model's name that has a manifest, readable or not, sorted."""
        return [name for name in self._every() if not is_step(name)]

    def steps(self) -> list[str]:
        """The names of steps towards models, under way or left behind."""
        return [name for name in self._every() if is_step(name)]

    def _every(self) -> list[str]:
        files = (path.name.removesuffix(".json") for path in self._folder.glob("*.json"))
        return sorted(file.replace("@", ":").replace("+", "/") for file in files)

    def get(self, name: str) -> Manifest | None:
        """The manifest of exactly `name`. BAD_FILE where it is damaged."""
        try:
            manifest = msgspec.json.decode(self.path(name).read_bytes(), type=Manifest)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise refused(error, self._folder) from error
        except msgspec.DecodeError as error:
            raise LlmrunError(
                BAD_FILE,
                f"{self.path(name)} is damaged: {error}",
                hint=f"llmrun rm {name}, then pull it again",
            ) from error
        # Disks that ignore letter case give one file for two tags.
        return self._fresh(manifest) if manifest.name == name else None

    def readable(self, name: str) -> Manifest | None:
        """As `get`, but a damaged manifest is logged and counts as none."""
        try:
            return self.get(name)
        except LlmrunError as error:
            _LOG.warning("%s", error)
            return None

    def all(self) -> Iterator[Manifest]:
        """Every readable manifest, by name."""
        for name in self.names():
            if manifest := self.readable(name):
                yield manifest

    def exists(self, name: str) -> bool:
        """Whether there is a manifest, readable or not."""
        return self.path(name).exists()

    def used_files(self, *, without: Collection[str] = ()) -> set[Path] | None:
        """All files that manifests name, but for those of the names `without`; None where a damaged one hides
        what it names."""
        used: set[Path] = set()
        for name in self._every():
            if name in without:
                continue
            try:
                manifest = self.get(name)
            except LlmrunError:
                return None
            if manifest:
                used.update(self.paths(manifest))
        return used

    def put(self, manifest: Manifest) -> None:
        """Write it, over a damaged one too. CONFLICT where the disk takes another tag for the same."""
        path = self.path(manifest.name)
        if path.exists() and _name_in(path) not in (None, manifest.name):
            raise LlmrunError(
                CONFLICT,
                f"a name like {manifest.name} is taken, but for letter case",
                hint="use another name",
            )
        write_atomic(path, msgspec.json.format(msgspec.json.encode(manifest), indent=2))

    def delete(self, name: str) -> None:
        self.path(name).unlink(missing_ok=True)

    def paths(self, manifest: Manifest) -> tuple[Path, ...]:
        """Where the model's files are, first shard first; they may be gone."""
        return tuple(self._models / entry.path for entry in manifest.files)

    def with_role(self, manifest: Manifest, role: Role) -> tuple[Path, ...]:
        """Those of its `paths` that have this role."""
        return tuple(self._models / entry.path for entry in manifest.files if entry.role == role)

    def entry(self, path: Path, sha256: str | None, role: Role = "weights") -> FileEntry:
        """What to remember of the file at `path`, which exists."""
        stat = path.stat()
        inside = path.is_relative_to(self._models)
        return FileEntry(
            path=(path.relative_to(self._models) if inside else path).as_posix(),
            size=stat.st_size,
            modified=stat.st_mtime_ns,
            sha256=sha256,
            role=role,
        )

    def owned(self, manifest: Manifest) -> bool:
        """Whether the store owns the weights (else they are used in place)."""
        return not manifest.files[0].in_place

    def _fresh(self, manifest: Manifest) -> Manifest:
        """With the facts read anew where a file used in place was replaced by another."""
        try:
            entries = tuple(self._now(entry) if entry.in_place else entry for entry in manifest.files)
            if entries == manifest.files:
                return manifest
            return msgspec.structs.replace(
                manifest, files=entries, facts=read_facts(self.with_role(manifest, "weights"))
            )
        except (OSError, LlmrunError):
            return manifest  # gone or spoilt: the listing shows what it was

    def _now(self, entry: FileEntry) -> FileEntry:
        """The entry of a file used in place as the file is now."""
        found = self.entry(Path(entry.path), None, entry.role)
        if (found.size, found.modified) == (entry.size, entry.modified):
            return entry
        return msgspec.structs.replace(found, source=entry.source)


def _name_in(path: Path) -> str | None:
    """The name that a manifest file holds, None where it cannot be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Manifest).name
    except (OSError, msgspec.DecodeError):
        return None
