"""Files and folders on this machine, used where they lie: nothing is copied, moved or deleted."""

from __future__ import annotations

from pathlib import Path

from llmrun.errors import UNKNOWN_MODEL, LlmrunError
from llmrun.store.companions import projector_for
from llmrun.store.progress import Meter
from llmrun.store.quants import shard_siblings, split_label, weights_in
from llmrun.store.reference import FileRef
from llmrun.store.transports.base import Fetched, Offer, RemoteFile

_MOST = 10_000  # files of a folder that are looked at


def offer(reference: FileRef) -> Offer:
    files = files_of(reference.path)
    model, quant = split_label(files[0].name)
    remote = [RemoteFile(file.name, file.stat().st_size, here=file) for file in files]
    if projector := _projector_of(files[0], model):
        size = projector.stat().st_size
        remote.append(RemoteFile(projector.name, size, role="projector", here=projector))
    return Offer(
        source=str(reference),
        files=tuple(remote),
        name=f"{model}:{quant}" if quant else model,
        fetch=_never,
        read=_read,
    )


def files_of(path: Path) -> tuple[Path, ...]:
    """The weights at `path`, a file or a folder of one model, with their shards in order. UNKNOWN_MODEL where
    it or a shard is missing, or the folder holds no model or several."""
    if path.is_dir():
        path = _in_folder(path)
    files = tuple(path.with_name(name) for name in shard_siblings(path.name))
    for file in files:
        if not file.is_file():
            raise LlmrunError(UNKNOWN_MODEL, f"{file} does not exist", hint="check the path")
    return files


def _in_folder(folder: Path) -> Path:
    """The first file of the one model in `folder` or below it."""
    found = weights_in(_listing(folder, "**/*"))
    if not found:
        raise LlmrunError(UNKNOWN_MODEL, f"{folder} holds no GGUF model", hint="check the path")
    if len(found) > 1:
        names = ", ".join(weights.files[0] for weights in found[:20])
        raise LlmrunError(UNKNOWN_MODEL, f"{folder} holds {len(found)} models", hint=f"name one: {names}")
    return folder / found[0].files[0]


def _projector_of(weights: Path, model: str) -> Path | None:
    """The projector beside `weights`, where all weights in their folder are of the one `model`."""
    beside = _listing(weights.parent, "*")
    if any(split_label(other.files[0])[0] != model for other in weights_in(beside)):
        return None
    name = projector_for(weights.name, beside)
    return weights.with_name(name) if name else None


def _listing(folder: Path, pattern: str) -> dict[str, int | None]:
    """The GGUF files in `folder`, by their path in it."""
    found: dict[str, int | None] = {}
    for seen, path in enumerate(folder.glob(pattern)):
        if seen >= _MOST:
            raise LlmrunError(
                UNKNOWN_MODEL, f"{folder} holds more than {_MOST} files", hint="name the model's own file"
            )
        if path.name.lower().endswith(".gguf") and path.is_file():
            found[path.relative_to(folder).as_posix()] = path.stat().st_size
    return found


def _read(file: RemoteFile, start: int, end: int) -> bytes:
    assert file.here
    with file.here.open("rb") as local:
        local.seek(start)
        return local.read(end - start)


def _never(missing: tuple[RemoteFile, ...], folder: Path, meter: Meter) -> tuple[Fetched, ...]:
    raise AssertionError(f"a local file is used in place, not fetched to {folder} ({missing}, {meter})")
