"""A model's own files and those that its Modelfile names apart, adapters and a draft. In: the offers of all.
Out: one `Offer`, so that they are fetched, verified and registered together."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from llmrun.errors import INVALID_REQUEST, UNKNOWN_MODEL, LlmrunError
from llmrun.store.companions import Role
from llmrun.store.manifest import Manifest
from llmrun.store.modelfile import Modelfile
from llmrun.store.progress import Meter
from llmrun.store.shelf import Shelf
from llmrun.store.transports.base import Fetched, Offer, RemoteFile


@dataclass(frozen=True)
class Companion:
    """What a Modelfile names apart: what it is to the model, as it is written there, and what that gives."""

    role: Role
    text: str
    offer: Offer

    @property
    def folder(self) -> str:
        """Where its files go, so that names which sources have in common do not clash."""
        return f"{self.role}-{hashlib.sha256(self.text.encode()).hexdigest()[:8]}"


def joined(offer: Offer, companions: Sequence[Companion]) -> Offer:
    """`offer` with the weights of all `companions` behind its own files. INVALID_REQUEST where an adapter
    comes in several files."""
    owners: dict[RemoteFile, tuple[Companion, RemoteFile]] = {}
    for one in companions:
        weights = [file for file in one.offer.files if file.role == "weights"]
        if one.role == "adapter" and len(weights) != 1:
            raise LlmrunError(
                INVALID_REQUEST,
                f"the adapter {one.text} comes in {len(weights)} files, where one is expected",
                hint="name the adapter's own file",
            )
        owners |= {replace(file, role=one.role, source=one.text): (one, file) for file in weights}

    def fetch(missing: tuple[RemoteFile, ...], into: Path, meter: Meter) -> tuple[Fetched, ...]:
        own = tuple(file for file in missing if file not in owners)
        fetched = offer.fetch(own, into, meter) if own else ()
        for file in missing:
            if file in owners:
                owner, original = owners[file]
                folder = into / owner.folder
                folder.mkdir(exist_ok=True)
                fetched += owner.offer.fetch((original,), folder, meter)
        return fetched

    return replace(offer, files=(*offer.files, *owners), fetch=fetch)


def offer_of_held(shelf: Shelf, manifest: Manifest, *, without: Sequence[Role] = ()) -> Offer:
    """What the model of `manifest`, which is here, has; but for files of the roles `without`."""

    def gone(missing: tuple[RemoteFile, ...], _: Path, __: Meter) -> tuple[Fetched, ...]:
        raise LlmrunError(
            UNKNOWN_MODEL, f"{missing[0].here}, a file of {manifest.name}, is gone", hint="try again"
        )

    return Offer(
        source=manifest.source,
        files=tuple(
            RemoteFile(
                Path(entry.path).name,
                entry.size,
                entry.sha256,
                role=entry.role,
                here=shelf.path(entry),
                source=entry.source,
            )
            for entry in manifest.files
            if entry.role not in without
        ),
        name=manifest.name,
        fetch=gone,
    )


def pinned(offer: Offer, modelfile: Modelfile) -> Offer:
    """`offer` with the digest that `modelfile` pins, where the source states none."""
    first, *rest = offer.files
    return replace(offer, files=(replace(first, sha256=first.sha256 or modelfile.sha256), *rest))
