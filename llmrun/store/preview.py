"""What a pull would do, told without doing it. In: an offer. Out: `Preview`. Fetches no weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from llmrun.store.companions import Role
from llmrun.store.disk import SPARE, free_space, on_disk
from llmrun.store.gather import Gather
from llmrun.store.manifest import Manifest
from llmrun.store.shelf import Shelf
from llmrun.store.transports import Offer


@dataclass(frozen=True)
class PreviewFile:
    """`size` None: the source does not say before it is fetched. `here`: it is on this machine already."""

    name: str
    role: Role
    size: int | None
    here: bool


@dataclass(frozen=True)
class Preview:
    """source   the reference in full, with the quant that was chosen; `why`: one line on the choice
    kept     bytes of an earlier, unfinished try, which are not fetched again
    to_fetch bytes that would come over the network; None where a size is not known
    free     bytes free where they would go
    """

    source: str
    why: str
    files: tuple[PreviewFile, ...]
    kept: int
    to_fetch: int | None
    free: int

    @property
    def fits_disk(self) -> bool | None:
        """Whether there is room for it; None where its size is not known."""
        return None if self.to_fetch is None else self.to_fetch + SPARE <= self.free


def preview(shelf: Shelf, offer: Offer, gather: Gather) -> Preview:
    held = gather.held_quickly(offer)
    files = tuple(PreviewFile(file.name, file.role, file.size, file in held) for file in offer.files)
    staging = shelf.partial / gather.key(offer)
    sizes = [file.size for file in files if not file.here]
    kept = on_disk(staging) if any(sizes) or None in sizes else 0
    known = sum(size for size in sizes if size is not None)
    return Preview(
        source=offer.source,
        why=offer.why,
        files=files,
        kept=kept,
        to_fetch=None if None in sizes else max(0, known - kept),
        free=free_space(shelf.models),
    )


def preview_of_held(shelf: Shelf, manifest: Manifest) -> Preview:
    """Of a model that is here whole, and that a pull would return as it is."""
    files = tuple(PreviewFile(Path(f.path).name, f.role, f.size, here=True) for f in manifest.files)
    why = f"{manifest.name} is here already"
    return Preview(manifest.source, why, files, kept=0, to_fetch=0, free=free_space(shelf.models))
