"""The models folder: manifests and the files they share. Who changes either holds `lock()`.

manifests/smollm2@135m.json                              what is known of `smollm2:135m`
files/SmolLM2-135M-Instruct.Q4_1-b179c9523d0e/….gguf     weights under their real names, so that other
                                                         programs can use them too
partial/KEY/                                             a pull under way, resumed by the next try
locks/                                                   empty files that processes hold
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from llmrun.store.disk import is_held, locked, size_of
from llmrun.store.manifest import FileEntry, Manifest, Manifests
from llmrun.store.model import StoredModel, from_manifest
from llmrun.store.quants import model_stem
from llmrun.store.steps import lock_key
from llmrun.store.transports import Fetched


class Shelf:
    """Made of nothing but paths: every process and thread has its own, and the locks keep them apart."""

    def __init__(self, models: Path) -> None:
        self.models = models
        self.manifests = Manifests(models)

    @property
    def partial(self) -> Path:
        """Where pulls collect their files, a folder each."""
        return self.models / "partial"

    def lock(self) -> AbstractContextManager[None]:
        """Held for moments only, never while bytes are fetched."""
        return self.key_lock("store", lambda: None)

    def key_lock(self, key: str, on_wait: Callable[[], None]) -> AbstractContextManager[None]:
        """The lock of one pull; `on_wait` is called where another holds it."""
        return locked(self.models / "locks" / f"{key}.lock", on_wait)

    def under_way(self, key: str) -> bool:
        """Whether a pull holds the lock `key`."""
        return is_held(self.models / "locks" / f"{key}.lock")

    def dead_steps(self) -> list[str]:
        """Steps towards models whose maker was killed. Under `lock()`."""
        return [step for step in self.manifests.steps() if not self.under_way(lock_key(step))]

    def forget(self, name: str) -> None:
        """The manifest `name` and the files that no other one uses go, if there are any. Under `lock()`."""
        manifest = self.manifests.readable(name)
        self.manifests.delete(name)
        if manifest:
            self.drop(manifest)

    def staging(self, key: str) -> Path:
        """The folder, made if need be, in which the pull `key` collects its files."""
        folder = self.partial / key
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def path(self, entry: FileEntry) -> Path:
        """Where the file is."""
        return self.models / entry.path

    def model(self, manifest: Manifest) -> StoredModel:
        return from_manifest(
            manifest, self.manifests.paths(manifest), in_place=not self.manifests.owned(manifest)
        )

    def whole(self, manifest: Manifest) -> bool:
        """Whether all its files are there, as long as they were."""
        pairs = zip(self.manifests.paths(manifest), manifest.files, strict=True)
        return all(size_of(path) == entry.size for path, entry in pairs)

    def take_in(self, fetched: Sequence[Fetched], staging: Path) -> tuple[FileEntry, ...]:
        """Move verified files from `staging`, which goes, to their place; all as weights. Under `lock()`."""
        digests = [file.sha256 for file in fetched]
        digest = digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
        folder = self.models / "files" / f"{model_stem(fetched[0].path.name)[:100]}-{digest[:12]}"
        folder.mkdir(parents=True, exist_ok=True)
        entries = []
        for file in fetched:
            place = folder / file.path.relative_to(staging)
            place.parent.mkdir(exist_ok=True)
            file.path.replace(place)
            entries.append(self.manifests.entry(place, file.sha256))
        shutil.rmtree(staging)
        return tuple(entries)

    def drop(self, manifest: Manifest) -> int:
        """Delete the files of `manifest`, which is no longer stored, that are ours and no other model's;
        the bytes freed. Where a damaged manifest hides what it uses, nothing is deleted. Under `lock()`."""
        used = self.manifests.used_files()
        if used is None:
            return 0
        freed = 0
        for path, entry in zip(self.manifests.paths(manifest), manifest.files, strict=True):
            if entry.in_place or path in used or not path.is_file():
                continue
            freed += path.stat().st_size
            path.unlink()
            for folder in path.parents:
                if folder == self.models or any(folder.iterdir()):
                    break
                folder.rmdir()
        return freed
