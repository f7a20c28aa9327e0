"""Files that clients send: kept whole or not at all."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from llmrun.store.blobs import Blobs
from llmrun.store.shelf import Shelf
from tests.daemon.fakes import FakeStore, run
from tests.daemon.serving import serving

DATA = b"GGUF and the rest"
DIGEST = f"sha256:{hashlib.sha256(DATA).hexdigest()}"


class BlobStore(FakeStore):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.blobs = Blobs(Shelf(folder / "models"))

    def files(self) -> list[Path]:
        return [path for path in (self.folder / "models").rglob("*") if path.is_file()]


async def pieces(*parts: bytes, breaks: bool = False) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
    if breaks:
        raise ConnectionError("the client hung up")


def test_receive_blob_keeps_it_once(tmp_path: Path) -> None:
    async def story() -> None:
        store = BlobStore(tmp_path)
        async with serving(store) as service:
            assert await service.blob(DIGEST) is None
            assert await service.receive_blob(DIGEST, len(DATA), pieces(DATA[:4], DATA[4:]))
            path = await service.blob(DIGEST)
            assert path is not None
            assert path.read_bytes() == DATA
            assert not await service.receive_blob(DIGEST, None, pieces(b"not even looked at"))
            assert path.read_bytes() == DATA

    run(story())


def test_receive_blob_whose_client_hangs_up_keeps_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        store = BlobStore(tmp_path)
        async with serving(store) as service:
            with pytest.raises(ConnectionError):
                await service.receive_blob(DIGEST, None, pieces(DATA[:4], breaks=True))
            assert store.files() == []

    run(story())
