from __future__ import annotations

from pathlib import Path

import pytest

from llmrun.errors import UNKNOWN_MODEL, LlmrunError
from llmrun.store.reference import FileRef
from llmrun.store.transports import local


def test_offer_file_is_here(tmp_path: Path) -> None:
    path = tmp_path / "模型 🦙-Q4_0.gguf"
    path.write_bytes(b"GGUF")
    chosen = local.offer(FileRef(str(path)))
    assert chosen.files[0].here == path
    assert chosen.size == 4
    assert chosen.name == "模型 🦙:Q4_0"


def test_offer_home_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "x.gguf").write_bytes(b"GGUF")
    assert local.offer(FileRef("~/x.gguf")).files[0].here == tmp_path / "x.gguf"


def test_offer_shards_are_found_from_any_of_them(tmp_path: Path) -> None:
    paths = [tmp_path / f"x-0000{number}-of-00002.gguf" for number in (1, 2)]
    for path in paths:
        path.write_bytes(b"GGUF")
    assert [file.here for file in local.offer(FileRef(str(paths[1]))).files] == paths


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("none.gguf", "does not exist"),
        (".", "is a folder"),
        ("x-00001-of-00002.gguf", "00002-of-00002.gguf does not"),
    ],
)
def test_offer_missing_file_or_shard_is_no_model(tmp_path: Path, name: str, what: str) -> None:
    (tmp_path / "x-00001-of-00002.gguf").write_bytes(b"GGUF")
    with pytest.raises(LlmrunError, match=what) as caught:
        local.offer(FileRef(f"{tmp_path}/{name}"))
    assert caught.value.kind is UNKNOWN_MODEL
