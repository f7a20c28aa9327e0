"""Models of an Ollama registry: a manifest, and blobs named by their SHA-256.

The protocol is that of container registries: `/v2/OWNER/NAME/manifests/TAG` lists layers with media type,
digest and size, `/v2/OWNER/NAME/blobs/DIGEST` has the bytes. Ollama's registry also knows the sums of parts
of a blob (`…/chunksums/DIGEST`, lines of `DIGEST START-END`), which are asked for where one arrived damaged.
No text of the registry becomes a path: files are named after the model that was asked for.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from llmrun.errors import BAD_FILE, DIGEST, DOWNLOAD, NOT_FOUND, LlmrunError
from llmrun.store import web
from llmrun.store.companions import Role
from llmrun.store.go_syntax import Untranslatable
from llmrun.store.go_template import looks_go, to_jinja
from llmrun.store.modelfile import parse_modelfile
from llmrun.store.reference import OllamaRef
from llmrun.store.transports.base import Offer, RemoteFile, Terms
from llmrun.store.transports.https import fetch_all, read_range
from llmrun.store.wanted import RangeSum, Wanted
from llmrun.types import Message, Options

_REGISTRY = "registry.ollama.ai"
_MANIFEST = {"Accept": "application/vnd.docker.distribution.manifest.v2+json"}
_KIND = "application/vnd.ollama.image."
FILES: dict[str, Role] = {"model": "weights", "projector": "projector", "adapter": "adapter"}
_PREFIXES: dict[Role, str] = {"projector": "mmproj", "adapter": "lora"}
_DENIED = "models that need Ollama's own key cannot be pulled; use a public one"
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_SUM = re.compile(r"sha256:([0-9a-f]{64})\s+(\d{1,19})-(\d{1,19})")
_LONGEST_TEXT = 1 << 20  # bytes of a template, a license, …


class Layer(msgspec.Struct, rename="camel"):
    """One blob of a model; `kind` says what it is."""

    media_type: str
    digest: str
    size: int

    @property
    def kind(self) -> str:
        return self.media_type.removeprefix(_KIND)


class RegistryManifest(msgspec.Struct):
    """What a registry, and Ollama's own folder, keep of a model."""

    layers: list[Layer]


class Texts(Protocol):
    """Where the small layers of a model are read from."""

    @property
    def reference(self) -> object: ...

    def text(self, layer: Layer, /) -> bytes: ...


@dataclass(frozen=True)
class _Source:
    reference: OllamaRef

    @property
    def base(self) -> str:
        host = web.base_url(self.reference.host or _REGISTRY)
        return f"{host}/v2/{self.reference.namespace}/{self.reference.model}"

    def manifest(self) -> RegistryManifest:
        reference = self.reference
        try:
            body = web.read(f"{self.base}/manifests/{reference.tag}", _MANIFEST, denied=_DENIED)
            return msgspec.json.decode(body, type=RegistryManifest)
        except msgspec.DecodeError as error:
            raise LlmrunError(BAD_FILE, f"the manifest of {reference} is damaged: {error}") from error
        except LlmrunError as error:
            if error.kind is not NOT_FOUND:
                raise
            raise LlmrunError(
                NOT_FOUND,
                f"the registry has no model {reference.model} with the tag {reference.tag} (HTTP 404)",
                hint="look up its tags on the registry's page",
            ) from error

    def sha256(self, layer: Layer) -> str:
        match = _DIGEST.fullmatch(layer.digest)
        if not match or layer.size < 0:
            raise LlmrunError(
                BAD_FILE,
                f"the manifest of {self.reference} names a blob {layer.digest[:100]!r} of {layer.size} bytes,"
                " which is no SHA-256 of anything",
                hint="do not trust this registry",
            )
        return match[1]

    def text(self, layer: Layer) -> bytes:
        """The bytes of a small layer, verified."""
        digest = self.sha256(layer)
        body = web.read(f"{self.base}/blobs/sha256:{digest}", {}, denied=_DENIED, limit=_LONGEST_TEXT)
        if (found := hashlib.sha256(body).hexdigest()) != digest:
            raise LlmrunError(
                DIGEST, f"the {layer.kind} of {self.reference} has the SHA-256 {found}, not {digest}", hint=""
            )
        return body

    def sums(self, sha256: str, size: int) -> tuple[RangeSum, ...]:
        """The sums of parts of a blob; none where the registry does not know them."""
        try:
            lines = web.read(f"{self.base}/chunksums/sha256:{sha256}", {}).decode("ascii", "replace")
        except LlmrunError:
            return ()  # the blob is then mended without
        found = [RangeSum(int(m[2]), int(m[3]) + 1, m[1]) for m in _SUM.finditer(lines)]
        return tuple(part for part in found if part.start < part.end <= size)


def offer(reference: OllamaRef) -> Offer:
    source = _Source(reference)
    layers = source.manifest().layers
    files = _files(source, layers)
    terms, problem = terms_of(source, layers)
    pattern = Wanted("", denied=_DENIED, sums=source.sums)
    return Offer(
        source=str(reference),
        files=files,
        name=reference.model if reference.tag == "latest" else f"{reference.model}:{reference.tag}",
        fetch=lambda missing, folder, meter: fetch_all(missing, folder, meter, pattern),
        vendor="ollama" if reference.namespace == "library" else reference.namespace,
        why=problem,
        terms=terms,
        read=lambda file, start, end: read_range(file, start, end, pattern),
    )


def _files(source: _Source, layers: Sequence[Layer]) -> tuple[RemoteFile, ...]:
    """The GGUF files, the weights first, under names of our own."""
    reference = source.reference
    by_kind: dict[str, list[Layer]] = {}
    for layer in layers:
        by_kind.setdefault(layer.kind, []).append(layer)
    if len(by_kind.get("model", ())) != 1:
        raise LlmrunError(
            NOT_FOUND,
            f"{reference} has {len(by_kind.get('model', ()))} GGUF files where one is expected",
            hint="it may be a model that only runs in the cloud; pull another tag",
        )
    files = []
    for kind, role in FILES.items():
        for number, layer in enumerate(by_kind.get(kind, ())):
            prefix = "" if role == "weights" else f"{_PREFIXES[role]}{number or ''}-"
            sha256 = source.sha256(layer)
            name = f"{prefix}{reference.model}-{reference.tag}.gguf"
            files.append(RemoteFile(name, layer.size, sha256, f"{source.base}/blobs/sha256:{sha256}", role))
    return tuple(files)


def terms_of(source: Texts, layers: Sequence[Layer]) -> tuple[Terms, str]:
    """What the small layers say, and a line on what of it cannot be used."""
    texts: dict[str, list[bytes]] = {}
    for layer in layers:
        if layer.kind in ("template", "system", "params", "messages", "license"):
            texts.setdefault(layer.kind, []).append(source.text(layer))
    said = {kind: b"\n\n".join(bodies).decode("utf-8", "replace") for kind, bodies in texts.items()}
    problems = []
    template = said.get("template")
    if template and looks_go(template):
        try:
            template = to_jinja(template)
        except Untranslatable as problem:
            template = None
            problems.append(f"its Go template has no twin in Jinja ({problem})")
    try:
        options, unknown = _options(msgspec.json.decode(said.get("params", "{}"), type=dict[str, Any]))
        messages = msgspec.json.decode(said.get("messages", "[]"), type=tuple[Message, ...])
    except msgspec.DecodeError as error:
        raise LlmrunError(DOWNLOAD, f"the parameters of {source.reference} are damaged: {error}") from error
    if unknown:
        problems.append(f"it sets {', '.join(unknown)}, which llmrun does not know")
    note = f"not used of {source.reference}: {'; '.join(problems)}" if problems else ""
    return Terms(options, said.get("system"), template, messages, said.get("license", "").strip()), note


def _options(parameters: dict[str, Any]) -> tuple[Options, list[str]]:
    """The parameters as a Modelfile would set them, and the names of those that it could not."""
    options, unknown = Options(), []
    for name, value in parameters.items():
        for one in value if isinstance(value, list) else [value]:
            said = _option(name, one)
            if said is None:
                unknown.append(name)
            else:
                options = said.over(options)
    return options, unknown


def _option(name: str, value: object) -> Options | None:
    try:
        return parse_modelfile(f'FROM x\nPARAMETER {name} """{value}"""').options
    except LlmrunError:
        return None
