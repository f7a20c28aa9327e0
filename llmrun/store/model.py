"""A model as the rest of the program sees it. In: a manifest, or a bare file. Out: `StoredModel`."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

from llmrun.store.companions import Role
from llmrun.store.facts import Facts, ModelKind, read_facts
from llmrun.store.manifest import Manifest
from llmrun.types import Message, Options


class Beside(NamedTuple):
    """A file beside a model's weights. `source` is the reference that a Modelfile named it by, empty where it
    came with the weights; `path` the first shard's, `size` the bytes of all."""

    path: Path
    source: str
    size: int


@dataclass(frozen=True)
class StoredModel:
    """One model on this machine.

    path        the GGUF file, the first shard where there are several
    files       all files that belong to it: the shards in order, then projector, adapters and draft
    size        bytes of all files
    sha256      of the first file, None where it was never computed (files used in place)
    source      where the bytes came from, as a reference
    sources     all places of the same bytes, where a Modelfile names several
    options     the GGUF's own sampling advice, under the Modelfile's parameters
    template    the Modelfile's chat template (Jinja); None means the GGUF's own, if it has one
    messages    turns of the Modelfile that every conversation starts with
    in_place    the files are not the store's: never moved, never deleted
    missing     a file is gone; all else is what it was when it was pulled
    adapters    LoRA adapters that count for every request that does not choose among them
    draft       a small model that drafts for this one
    """

    name: str
    path: Path
    files: tuple[Path, ...]
    size: int
    sha256: str | None
    source: str
    modified: datetime
    architecture: str
    quant: str
    parameters: int
    ctx_train: int
    options: Options
    system: str | None
    template: str | None
    license: str
    kind: ModelKind
    in_place: bool
    missing: bool = False
    messages: tuple[Message, ...] = ()
    projector: Path | None = None
    adapters: tuple[Beside, ...] = ()
    draft: Beside | None = None
    sources: tuple[str, ...] = ()

    @property
    def mended_by(self) -> str:
        """What a person does where a file of it is gone."""
        return f"put the file back ({self.path})" if self.in_place else f"llmrun pull {self.name}"

    @property
    def named(self) -> tuple[Beside, ...]:
        """Adapters and draft that a Modelfile names apart from the weights."""
        return tuple(one for one in (*self.adapters, *filter(None, [self.draft])) if one.source)


def from_manifest(manifest: Manifest, files: tuple[Path, ...], in_place: bool) -> StoredModel:
    """The model of `manifest`, whose files should be at `files`."""
    by_role: dict[Role, list[Beside]] = {}
    for entry, file in zip(manifest.files, files, strict=True):
        by_role.setdefault(entry.role, []).append(Beside(file, entry.source, entry.size))
    drafts = by_role.get("draft", [])
    facts = manifest.facts
    return StoredModel(
        name=manifest.name,
        path=files[0],
        files=files,
        size=sum(entry.size for entry in manifest.files),
        sha256=manifest.files[0].sha256,
        source=manifest.source,
        modified=manifest.created,
        architecture=facts.architecture,
        quant=facts.quant,
        parameters=facts.parameters,
        ctx_train=facts.ctx_train,
        options=manifest.options.over(facts.options),
        system=manifest.system,
        template=manifest.template,
        license=manifest.license or facts.license,
        # A template of its own makes a plain model one to chat with.
        kind="chat" if manifest.template and facts.kind == "completion" else facts.kind,
        in_place=in_place,
        missing=not all(file.is_file() for file in files),
        messages=manifest.messages,
        projector=next((one.path for one in by_role.get("projector", ())), None),
        adapters=tuple(by_role.get("adapter", ())),
        sources=manifest.sources,
        draft=drafts[0]._replace(size=sum(one.size for one in drafts)) if drafts else None,
    )


def _state(file: Path) -> tuple[int, ...]:
    """What changes with a file's content; nothing of one that is not there: reading it says so."""
    try:
        stat = file.stat()
    except OSError:
        return ()
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


@functools.lru_cache(maxsize=64)
def _facts(files: tuple[Path, ...], _states: tuple[tuple[int, ...], ...]) -> Facts:
    """`read_facts` of files as long as they are in these states: reading a header takes some 20 ms, and each
    request that names a model by its path asks."""
    return read_facts(files)


def from_files(name: str, files: Sequence[Path]) -> StoredModel:
    """The model in files that no manifest knows. BAD_FILE where they are no model."""
    facts = _facts(tuple(files), tuple(map(_state, files)))
    stats = [file.stat() for file in files]
    return StoredModel(
        name=name,
        path=files[0],
        files=tuple(files),
        size=sum(stat.st_size for stat in stats),
        sha256=None,
        source=str(files[0]),
        modified=datetime.fromtimestamp(int(stats[0].st_mtime), timezone.utc),
        architecture=facts.architecture,
        quant=facts.quant,
        parameters=facts.parameters,
        ctx_train=facts.ctx_train,
        options=facts.options,
        system=None,
        template=None,
        license=facts.license,
        kind=facts.kind,
        in_place=True,
    )
