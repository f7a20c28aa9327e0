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
        (".", "holds no GGUF model"),
        ("x-00001-of-00002.gguf", "00002-of-00002.gguf does not"),
    ],
)
def test_offer_missing_file_or_shard_is_no_model(tmp_path: Path, name: str, what: str) -> None:
    (tmp_path / "x-00001-of-00002.gguf").write_bytes(b"GGUF")
    with pytest.raises(LlmrunError, match=what) as caught:
        local.offer(FileRef(f"{tmp_path}/{name}"))
    assert caught.value.kind is UNKNOWN_MODEL


def test_offer_folder_of_one_model_is_that_model_with_its_projector(tmp_path: Path) -> None:
    folder = tmp_path / "m y 模型\u3000🦙"
    (folder / "Q8_0").mkdir(parents=True)
    shards = [folder / "Q8_0" / f"M-Q8_0-0000{number}-of-00002.gguf" for number in (1, 2)]
    projector = folder / "Q8_0" / "mmproj-F16.gguf"
    for path in (*shards, projector, folder / "README.md"):
        path.write_bytes(b"GGUF")
    chosen = local.offer(FileRef(str(folder)))
    assert [file.here for file in chosen.files] == [*shards, projector]
    assert [file.role for file in chosen.files] == ["weights", "weights", "projector"]
    assert chosen.name == "M:Q8_0"


def test_offer_folder_of_several_models_names_them(tmp_path: Path) -> None:
    for name in ("A-Q4_0.gguf", "B-Q4_0.gguf"):
        (tmp_path / name).write_bytes(b"GGUF")
    with pytest.raises(LlmrunError, match="holds 2 models") as caught:
        local.offer(FileRef(str(tmp_path)))
    assert "A-Q4_0.gguf, B-Q4_0.gguf" in caught.value.hint


def test_offer_file_among_other_models_takes_no_projector(tmp_path: Path) -> None:
    for name in ("A-Q4_0.gguf", "A-Q8_0.gguf", "mmproj-A-F16.gguf"):
        (tmp_path / name).write_bytes(b"GGUF")
    assert len(local.offer(FileRef(str(tmp_path / "A-Q8_0.gguf"))).files) == 2
    (tmp_path / "B-Q4_0.gguf").write_bytes(b"GGUF")
    assert len(local.offer(FileRef(str(tmp_path / "A-Q8_0.gguf"))).files) == 1
