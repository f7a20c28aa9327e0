"""Files on this machine, used where they lie: nothing is copied, moved or deleted."""

from __future__ import annotations

from pathlib import Path

from llmrun.errors import UNKNOWN_MODEL, LlmrunError
from llmrun.store.download import Wanted
from llmrun.store.progress import Meter
from llmrun.store.quants import shard_siblings, split_label
from llmrun.store.reference import FileRef
from llmrun.store.transports.base import Fetched, Offer, RemoteFile
from llmrun.store.transports.https import read_range


def offer(reference: FileRef) -> Offer:
    files = files_of(reference.path)
    model, quant = split_label(files[0].name)
    return Offer(
        source=str(reference),
        files=tuple(RemoteFile(file.name, file.stat().st_size, here=file) for file in files),
        name=f"{model}:{quant}" if quant else model,
        fetch=_never,
        read=lambda file, start, end: read_range(file, start, end, Wanted("")),
    )


def files_of(path: Path) -> tuple[Path, ...]:
    """`path` with its shards, in order. UNKNOWN_MODEL where it or a shard is missing."""
    files = tuple(path.with_name(name) for name in shard_siblings(path.name))
    for file in files:
        if not file.is_file():
            what = "is a folder, not a GGUF file" if file.is_dir() else "does not exist"
            raise LlmrunError(UNKNOWN_MODEL, f"{file} {what}", hint="check the path")
    return files


def _never(missing: tuple[RemoteFile, ...], folder: Path, meter: Meter) -> tuple[Fetched, ...]:
    raise AssertionError(f"a local file is used in place, not fetched to {folder} ({missing}, {meter})")
