"""Models that other programs keep on this machine. In: environment and home folder. Out: what is there, and
its registration: the files are used where they lie, not a byte is copied, moved or changed.

Known are the folders of Ollama, LM Studio, the Hugging Face Hub's cache and llama.cpp's cache, each a
function here that yields `Found`. A model whose file vanishes later is listed as missing.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from llmrun.config import Paths
from llmrun.errors import BAD_FILE, LlmrunError
from llmrun.store.catalogue import Catalogue
from llmrun.store.companions import Role, projector_for
from llmrun.store.disk import writing
from llmrun.store.inspecting import inspect
from llmrun.store.manifest import FileEntry, Manifest, now
from llmrun.store.naming import short_name
from llmrun.store.quants import split_label, weights_in
from llmrun.store.reference import parse_name
from llmrun.store.shelf import Shelf
from llmrun.store.transports.base import Terms
from llmrun.store.transports.ollama import FILES, Layer, RegistryManifest, terms_of

_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_OLLAMA_FOLDERS = ("/usr/share/ollama/.ollama/models", "/var/lib/ollama/models")
_MOST = 100_000  # files of a folder that are looked at


@dataclass(frozen=True)
class Found:
    """A model of another program. `name` is what it may be called, as `MODEL` or `MODEL:TAG` in any spelling;
    `files` with their roles, weights first; `sha256` of the first, where the program knows it."""

    program: str
    name: str
    vendor: str
    files: tuple[tuple[Path, Role], ...]
    sha256: str | None = None
    terms: Terms = field(default_factory=Terms)
    note: str = ""


@dataclass(frozen=True)
class Imported:
    """What became of it. state: `new` (registered as `name`), `known` (its file is that of the model `name`
    already) or `refused` (`reason` says why)."""

    found: Found
    state: Literal["new", "known", "refused"]
    name: str = ""
    reason: str = ""


class Importer:
    """Takes models into one models folder."""

    def __init__(self, paths: Paths) -> None:
        self._shelf = Shelf(paths.models)
        self._catalogue = Catalogue()

    def judge(self, found: Found) -> Imported:
        """What `take` would do; nothing is written."""
        return self._judge(found)[0]

    def take(self, found: Found) -> Imported:
        """Register it, if it is a model and not known yet."""
        with writing(self._shelf.models), self._shelf.lock():
            judged, manifest = self._judge(found)
            if manifest:
                self._shelf.manifests.put(manifest)
        return judged

    def _judge(self, found: Found) -> tuple[Imported, Manifest | None]:
        first = found.files[0][0]
        for manifest in self._shelf.manifests.all():
            if first in self._shelf.manifests.paths(manifest):
                return Imported(found, "known", manifest.name), None
        try:
            facts = inspect(found.files)
        except LlmrunError as error:
            return Imported(found, "refused", reason=error.message), None
        name = short_name(found.name, found.vendor, self._taken)
        terms = found.terms
        manifest = Manifest(
            name=name,
            reference=name,
            source=str(first),
            created=now(),
            files=tuple(self._entry(found, path, role) for path, role in found.files),
            facts=facts,
            options=terms.options,
            system=terms.system,
            template=terms.template,
            messages=terms.messages,
            license=terms.license,
        )
        return Imported(found, "new", name), manifest

    def _entry(self, found: Found, path: Path, role: Role) -> FileEntry:
        return self._shelf.manifests.entry(path, found.sha256 if path == found.files[0][0] else None, role)

    def _taken(self, name: str) -> bool:
        return self._shelf.manifests.exists(name) or self._catalogue.find(parse_name(name)) is not None


def find_all(home: Path, env: Mapping[str, str] = os.environ) -> list[Found]:
    """Every model that the known programs keep, for the person whose home folder is `home`. Folders that
    cannot be read count as empty."""
    finders: tuple[Callable[[Path, Mapping[str, str]], Iterator[Found]], ...] = (
        _ollama,
        _lm_studio,
        _hub,
        _llama_cpp,
    )
    return [found for finder in finders for found in finder(home, env)]


def _cache(home: Path, env: Mapping[str, str]) -> Path:
    """Where programs keep their caches."""
    if sys.platform == "darwin":
        return home / "Library" / "Caches"
    return Path(env.get("XDG_CACHE_HOME") or env.get("LOCALAPPDATA") or home / ".cache")


def _ollama(home: Path, env: Mapping[str, str]) -> Iterator[Found]:
    own = env.get("OLLAMA_MODELS")
    for folder in [Path(own)] if own else [home / ".ollama" / "models", *map(Path, _OLLAMA_FOLDERS)]:
        for file in _files(folder / "manifests", "*/*/*/*"):
            if found := _ollama_model(folder, file):
                yield found


@dataclass(frozen=True)
class _Blobs:
    """The small layers of a model in Ollama's folder."""

    folder: Path
    reference: str

    def path(self, layer: Layer) -> Path | None:
        match = _DIGEST.fullmatch(layer.digest)
        return self.folder / "blobs" / f"sha256-{match[1]}" if match else None

    def text(self, layer: Layer, /) -> bytes:
        path = self.path(layer)
        if path is None:
            raise LlmrunError(BAD_FILE, f"the manifest of {self.reference} names no blob", hint="")
        return path.read_bytes()


def _ollama_model(folder: Path, file: Path) -> Found | None:
    """The model of one of Ollama's manifests; None where it has no weights here (a cloud model)."""
    namespace, model, tag = file.parts[-3:]
    name = model if tag == "latest" else f"{model}:{tag}"
    blobs = _Blobs(folder, name)
    try:
        layers = msgspec.json.decode(file.read_bytes(), type=RegistryManifest).layers
        files = [
            (path, FILES[layer.kind])
            for layer in sorted(layers, key=lambda one: one.kind != "model")
            if layer.kind in FILES and (path := blobs.path(layer))
        ]
        if not files or files[0][1] != "weights":
            return None
        terms, note = terms_of(blobs, layers)
    except (OSError, msgspec.DecodeError, LlmrunError):
        return None
    vendor = "ollama" if namespace == "library" else namespace
    return Found("Ollama", name, vendor, tuple(files), files[0][0].name[7:], terms, note)


def _lm_studio(home: Path, env: Mapping[str, str]) -> Iterator[Found]:  # noqa: ARG001 (it has no variable)
    for folder in (home / ".lmstudio" / "models", home / ".cache" / "lm-studio" / "models"):
        for repository in _folders(folder, "*/*"):
            yield from _models_in("LM Studio", repository, repository.parent.name)


def _hub(home: Path, env: Mapping[str, str]) -> Iterator[Found]:
    hub_home = Path(env.get("HF_HOME") or Path(env.get("XDG_CACHE_HOME") or home / ".cache") / "huggingface")
    hub = Path(env.get("HF_HUB_CACHE") or env.get("HUGGINGFACE_HUB_CACHE") or hub_home / "hub")
    for repository in _folders(hub, "models--*--*"):
        snapshots = sorted(_folders(repository / "snapshots", "*"), key=lambda path: path.stat().st_mtime)
        if snapshots:
            _, vendor, title = repository.name.split("--", 2)
            yield from _models_in("Hugging Face", snapshots[-1], vendor, re.sub(r"(?i)[-._]gguf$", "", title))


def _llama_cpp(home: Path, env: Mapping[str, str]) -> Iterator[Found]:
    folder = Path(env.get("LLAMA_CACHE") or _cache(home, env) / "llama.cpp")
    yield from _models_in("llama.cpp", folder, "")


def _models_in(program: str, folder: Path, vendor: str, title: str = "") -> Iterator[Found]:
    """The models among the GGUF files in and below `folder`, each with its projector."""
    sizes: dict[str, int | None] = {
        file.relative_to(folder).as_posix(): None for file in _files(folder, "**/*.gguf")
    }
    for weights in weights_in(sizes):
        model, quant = split_label(weights.files[0].rpartition("/")[2])
        roles: list[tuple[Path, Role]] = [(folder / name, "weights") for name in weights.files]
        # Where many models share a folder, nothing says whose the projector is.
        if vendor and (projector := projector_for(weights.files[0], sizes)):
            roles.append((folder / projector, "projector"))
        name = title if title and quant else model
        yield Found(program, f"{name}:{quant}" if quant else name, vendor, tuple(roles))


def _files(folder: Path, pattern: str) -> list[Path]:
    return [path for path in _below(folder, pattern) if path.is_file()]


def _folders(folder: Path, pattern: str) -> list[Path]:
    return [path for path in _below(folder, pattern) if path.is_dir()]


def _below(folder: Path, pattern: str) -> list[Path]:
    try:
        return sorted(path for path, _ in zip(folder.glob(pattern), range(_MOST), strict=False))
    except OSError:
        return []
