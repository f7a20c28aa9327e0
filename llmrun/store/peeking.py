"""What a model is, before any of it is here: its headers by range requests. In: an `Offer`. Out: headers."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

from llmrun.errors import DOWNLOAD, LlmrunError
from llmrun.store.anatomy import anatomy
from llmrun.store.byte_sources import MOST, Ranges
from llmrun.store.facts import facts_of
from llmrun.store.gguf import GGUFHeader, parse_header, read_header
from llmrun.store.model import Beside, StoredModel
from llmrun.store.modelfile import Modelfile
from llmrun.store.plan import Company
from llmrun.store.quants import shard_siblings
from llmrun.store.transports import Offer, RemoteFile


class Peek(NamedTuple):
    """A model and the headers of its weights, first shard first. `remote`: it is not on this machine, and
    `model.files` holds bare names. `draft`: the headers of the model that drafts for it, where it is here."""

    model: StoredModel
    headers: tuple[GGUFHeader, ...]
    remote: bool
    draft: tuple[GGUFHeader, ...] = ()

    @property
    def company(self) -> Company:
        """What is loaded beside it."""
        adapters = sum(one.size for one in self.model.adapters)
        return Company(adapters, anatomy(self.draft) if self.draft else None)


def peek_at(model: StoredModel) -> Peek:
    """A model that is here."""
    draft = _headers(model.draft.path) if model.draft else ()
    return Peek(model, _headers(model.path), remote=False, draft=draft)


def _headers(path: Path) -> tuple[GGUFHeader, ...]:
    """Those of all shards of the model whose first is at `path`."""
    return tuple(read_header(path.with_name(name)) for name in shard_siblings(path.name))


def peek_into(offer: Offer, described: Modelfile, name: str) -> Peek:
    """A model as its source offers it and `described` describes it. DOWNLOAD where the source shows nothing
    before it is fetched whole."""
    files = [file for file in offer.files if file.role == "weights"]
    headers = tuple(_header(offer, file) for file in files)
    facts = facts_of(headers, Path(files[0].name))
    terms = offer.terms
    model = StoredModel(
        name=name,
        path=Path(files[0].name),
        files=tuple(Path(file.name) for file in files),
        size=offer.size or sum(header.data_offset + _end(header) for header in headers),
        sha256=files[0].sha256,
        source=offer.source,
        modified=datetime.now(timezone.utc).replace(microsecond=0),
        architecture=facts.architecture,
        quant=facts.quant,
        parameters=facts.parameters,
        ctx_train=facts.ctx_train,
        options=described.options.over(terms.options).over(facts.options),
        system=described.system or terms.system,
        template=described.template or terms.template,
        license=described.license or terms.license or facts.license,
        kind=facts.kind,
        in_place=False,
        messages=described.messages or terms.messages,
        adapters=tuple(Beside(Path(str(one)), str(one), 0) for one in described.adapters),
        draft=Beside(Path(str(described.draft)), str(described.draft), 0) if described.draft else None,
    )
    return Peek(model, headers, remote=True)


def _header(offer: Offer, file: RemoteFile) -> GGUFHeader:
    if file.here:
        return read_header(file.here)
    read = offer.read
    if read is None:
        raise LlmrunError(
            DOWNLOAD,
            f"{offer.source} does not show what it holds before it is fetched whole",
            hint=f"llmrun pull {offer.source}",
        )
    source = Ranges(lambda start, end: read(file, start, end), file.size or MOST)
    return parse_header(source, file.size, f"{offer.source} ({file.name})")


def _end(header: GGUFHeader) -> int:
    return max((tensor.offset + tensor.size for tensor in header.tensors), default=0)
