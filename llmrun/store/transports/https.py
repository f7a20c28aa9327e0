"""One model by URL; all its shards where the URL names one of them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from llmrun.store import web
from llmrun.store.download import download
from llmrun.store.progress import Meter
from llmrun.store.quants import shard_siblings, split_label
from llmrun.store.reference import UrlRef
from llmrun.store.transports.base import Fetched, Offer, RemoteFile
from llmrun.store.wanted import Wanted


def offer(reference: UrlRef) -> Offer:
    parts = urlsplit(reference.url)
    folder, _, last = parts.path.rpartition("/")
    name = re.sub(r"[\x00-\x1f/\\]", "_", unquote(last))
    model, quant = split_label(name)
    files = tuple(
        RemoteFile(sibling, url=parts._replace(path=f"{folder}/{path}").geturl())
        for sibling, path in zip(shard_siblings(name), shard_siblings(last), strict=True)
    )
    return Offer(
        source=str(reference),
        files=files,
        name=f"{model}:{quant}" if quant else model,
        fetch=lambda missing, into, meter: fetch_all(missing, into, meter, Wanted("")),
        vendor=parts.hostname or "",
        read=lambda file, start, end: read_range(file, start, end, Wanted("")),
    )


def sized(offer: Offer) -> Offer:
    """The same with the sizes that the servers state, where the source itself stated none."""
    files = tuple(
        replace(file, size=web.length(file.url, {})) if file.url and file.size is None else file
        for file in offer.files
    )
    return replace(offer, files=files)


def read_range(file: RemoteFile, start: int, end: int, pattern: Wanted) -> bytes:
    """Bytes `start` to `end` (not included) of `file`, where it lies or over the network."""
    if file.here:
        with file.here.open("rb") as local:
            local.seek(start)
            return local.read(end - start)
    return web.read(file.url, pattern.headers, denied=pattern.denied, span=(start, end))


def fetch_all(
    files: tuple[RemoteFile, ...], folder: Path, meter: Meter, pattern: Wanted
) -> tuple[Fetched, ...]:
    """Every file by its URL into `folder`, with the headers and the advice of `pattern`."""
    fetched = []
    for file in files:
        target = folder / file.name
        wanted = replace(pattern, url=file.url, size=file.size, sha256=file.sha256)
        fetched.append(Fetched(target, download(wanted, target, meter)))
        meter.file_done(target.stat().st_size)
    return tuple(fetched)
