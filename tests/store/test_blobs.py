from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from llmrun.config import Paths
from llmrun.errors import DISK, INVALID_REQUEST, LlmrunError
from llmrun.store import Modelfile, Store
from llmrun.store.blobs import Blobs
from llmrun.store.reference import FileRef
from llmrun.store.shelf import Shelf
from tests.support.tiny import write_llama

DATA = b"GGUF and the rest"
DIGEST = f"sha256:{hashlib.sha256(DATA).hexdigest()}"


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    return Blobs(Shelf(tmp_path / "mod els"))


def files(blobs: Blobs) -> list[Path]:
    return [path for path in blobs._folder.rglob("*") if path.is_file()]


def test_receive_in_pieces_is_found_whole(blobs: Blobs) -> None:
    assert blobs.find(DIGEST) is None
    upload = blobs.receive(DIGEST, len(DATA))
    for at in range(0, len(DATA), 5):
        upload.write(DATA[at : at + 5])
    assert blobs.find(DIGEST) is None
    upload.finish()
    found = blobs.find(DIGEST)
    assert found is not None
    assert found.read_bytes() == DATA
    assert files(blobs) == [found]


def test_receive_other_bytes_keeps_nothing_and_says_both_digests(blobs: Blobs) -> None:
    upload = blobs.receive(DIGEST, None)
    upload.write(b"other")
    with pytest.raises(LlmrunError, match=hashlib.sha256(b"other").hexdigest()) as caught:
        upload.finish()
    assert caught.value.kind is INVALID_REQUEST
    assert DIGEST in caught.value.message
    assert files(blobs) == []


def test_discard_keeps_nothing(blobs: Blobs) -> None:
    upload = blobs.receive(DIGEST, None)
    upload.write(DATA)
    upload.discard()
    assert files(blobs) == []


def test_receive_more_than_there_is_room_for_is_refused_first(blobs: Blobs) -> None:
    with pytest.raises(LlmrunError) as caught:
        blobs.receive(DIGEST, 2**60)
    assert caught.value.kind is DISK
    assert files(blobs) == []


@pytest.mark.parametrize(
    "digest",
    [
        "",
        "sha256:",
        "sha256:" + "0" * 63,
        "sha256:" + "G" * 64,
        "md5:" + "0" * 64,
        "sha256:../../" + "0" * 58,
    ],
)
def test_digest_that_is_none_touches_no_file(blobs: Blobs, digest: str) -> None:
    for use in (blobs.find, lambda text: blobs.receive(text, None)):
        with pytest.raises(LlmrunError) as caught:
            use(digest)
        assert caught.value.kind is INVALID_REQUEST
    assert not blobs._folder.exists()


def test_model_made_of_a_blob_owns_it_and_takes_it_along(tmp_path: Path) -> None:
    store = Store(Paths.find({"LLMRUN_HOME": str(tmp_path / "home")}))
    data = write_llama(tmp_path / "tiny.gguf").read_bytes()
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    upload = store.blobs.receive(digest, len(data))
    upload.write(data)
    upload.finish()
    blob = store.blobs.find(digest)
    model = store.create("mine", Modelfile(sources=(FileRef(str(blob)),), system="Be brief."))
    assert (model.path, model.system, model.in_place) == (blob, "Be brief.", False)
    store.create("other", Modelfile(sources=(FileRef(str(blob)),)))
    store.remove("mine")
    assert store.blobs.find(digest) == blob
    store.remove("other")
    assert store.blobs.find(digest) is None
