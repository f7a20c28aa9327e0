"""Files that a client brings, for models to be made of: `models/blobs/sha256-HEX.gguf`.

A blob appears when all of it came and its digest is right. A model made of it owns it from then on.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from pathlib import Path

from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.store.disk import require_space, writing
from llmrun.store.shelf import Shelf

_DIGEST = re.compile(r"sha256[:-]([0-9a-f]{64})")


def hex_of(digest: str) -> str:
    """The digits of `sha256:HEX`. INVALID_REQUEST where `digest` is anything else."""
    if match := _DIGEST.fullmatch(digest):
        return match[1]
    shown = digest if len(digest) <= 80 else f"{digest[:80]}…"
    raise LlmrunError(
        INVALID_REQUEST, f"{shown!r} is not a digest", hint="send sha256: and 64 hexadecimal digits"
    )


class Blobs:
    """The blobs of one shelf. Any thread and process."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._folder = shelf.models / "blobs"

    def find(self, digest: str) -> Path | None:
        """A file of these bytes: a blob, or one that a stored model has."""
        wanted = hex_of(digest)
        blob = self._place(wanted)
        if blob.is_file():
            return blob
        for manifest in self._shelf.manifests.all():
            for entry in manifest.files:
                if entry.sha256 == wanted and (path := self._shelf.path(entry)).is_file():
                    return path
        return None

    def receive(self, digest: str, size: int | None) -> Upload:
        """A file to be written to; DISK where `size` bytes have no room."""
        wanted = hex_of(digest)
        with writing(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            require_space(self._folder, size or 0)
            return Upload(self._place(wanted), wanted)

    def _place(self, digits: str) -> Path:
        return self._folder / f"sha256-{digits}.gguf"


class Upload:
    """One blob as it arrives: `write` what comes, then `finish`; or `discard`. One thread at a time."""

    def __init__(self, place: Path, digits: str) -> None:
        self._place = place
        self._wanted = digits
        self._digest = hashlib.sha256()
        self._file = tempfile.NamedTemporaryFile(  # noqa: SIM115 (open until finish or discard)
            dir=place.parent, prefix=".", suffix=".tmp", delete=False
        )

    def write(self, data: bytes) -> None:
        with writing(self._place.parent):
            self._file.write(data)
        self._digest.update(data)

    def finish(self) -> None:
        """Put the blob in its place. INVALID_REQUEST, and nothing is kept, where the digest is another."""
        got = self._digest.hexdigest()
        if got != self._wanted:
            self.discard()
            raise LlmrunError(
                INVALID_REQUEST,
                f"the bytes have the digest sha256:{got}, not sha256:{self._wanted}",
                hint="nothing of them was kept; send the file again",
            )
        with writing(self._place.parent):
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            Path(self._file.name).replace(self._place)

    def discard(self) -> None:
        """Keep nothing."""
        self._file.close()
        Path(self._file.name).unlink(missing_ok=True)
