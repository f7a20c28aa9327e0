"""What the hubs have in common: a listing of files in, the `Offer` of one model in it out. Asks no hub."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from llmrun.errors import NOT_FOUND, LlmrunError
from llmrun.store.companions import projector_for
from llmrun.store.hardware import this_machine
from llmrun.store.quants import choose, shard_siblings, split_label, weights_in
from llmrun.store.reference import RepoRef
from llmrun.store.transports.base import Offer, RemoteFile
from llmrun.store.transports.https import fetch_all, read_range
from llmrun.store.wanted import Wanted


@dataclass(frozen=True)
class Listed:
    """One file of a repository, as its hub states it. `here`: where it already lies on this machine."""

    url: str
    size: int | None = None
    sha256: str | None = None
    here: Path | None = None


def offer_from(reference: RepoRef, files: Mapping[str, Listed], pattern: Wanted, note: str = "") -> Offer:
    """The offer of the file that was named, or of the quant that was named or is best, with the projector
    that belongs to it. `files` has every file by its path; `note` goes before the reason of the choice.
    NOT_FOUND, with what there is, where there is no such file or quant."""
    repo, label = reference.repo, ""
    vendor, _, title = repo.partition("/")
    if reference.file:
        paths, why = _named(repo, reference.file, files), f"{reference.file} as asked"
        model, quant = split_label(paths[0])
        projector = None
    else:
        sizes = {path: file.size for path, file in files.items()}
        weights, why = choose(repo, weights_in(sizes), reference.quant, this_machine())
        paths, label = weights.files, weights.label
        model, quant = re.sub(r"(?i)[-._]gguf$", "", title), label
        projector = projector_for(paths[0], files)
    remote = [_remote(path, files[path]) for path in paths]
    if projector:
        remote.append(_remote(projector, files[projector], projector=True))
    exact = type(reference)(repo, label) if label else type(reference)(repo, file=paths[0])
    return Offer(
        source=str(exact),
        files=tuple(remote),
        name=f"{model}:{quant}" if quant else model,
        fetch=lambda missing, folder, meter: fetch_all(missing, folder, meter, pattern),
        vendor=vendor,
        read=lambda file, start, end: read_range(file, start, end, pattern),
        why=note + why if note or not (reference.quant or reference.file) else "",
    )


def _remote(path: str, file: Listed, *, projector: bool = False) -> RemoteFile:
    name = PurePosixPath(path).name
    return RemoteFile(
        name, file.size, file.sha256, file.url, "projector" if projector else "weights", file.here
    )


def _named(repo: str, name: str, files: Mapping[str, Listed]) -> tuple[str, ...]:
    """The file `name` with its shards; letter case is forgiven, since publishers rename."""
    by_lower = {path.lower(): path for path in files}
    paths = shard_siblings(by_lower.get(name.lower(), name))
    for path in paths:
        if path not in files:
            there = ", ".join(path for path in files if path.lower().endswith(".gguf")) or "none"
            raise LlmrunError(
                NOT_FOUND, f"{repo} has no file {path} (HTTP 404)", hint=f"its GGUF files: {there}"
            )
    return paths
