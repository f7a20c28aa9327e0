from __future__ import annotations

import logging
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmrun.errors import BAD_FILE, LlmrunError
from llmrun.store.facts import Facts, read_facts
from llmrun.store.manifest import FileEntry, Manifest, Manifests, now
from llmrun.store.reference import parse_name
from llmrun.types import Options
from tests.store.models import write_gguf

FACTS = Facts(
    architecture="llama", quant="F32", parameters=1, ctx_train=1, kind="chat", license="", options=Options()
)


def manifest(name: str, *paths: str) -> Manifest:
    files = tuple(
        FileEntry(path=path, size=1, modified=1, sha256="ab") for path in paths or ("files/x/x.gguf",)
    )
    return Manifest(name=name, reference=name, source="hf.co/o/r", created=now(), files=files, facts=FACTS)


@pytest.fixture
def manifests(tmp_path: Path) -> Manifests:
    return Manifests(tmp_path)


def test_put_and_get_give_the_same_back(manifests: Manifests) -> None:
    for name in ("a", "a:b", "a/b", "a/b:C.d", "a.json", "a-b_c:1"):
        manifests.put(manifest(name))
    assert [m.name for m in manifests.all()] == ["a", "a-b_c:1", "a.json", "a/b", "a/b:C.d", "a:b"]
    assert manifests.get("a/b:C.d") == manifest("a/b:C.d")
    assert manifests.get("a/c") is None


_part = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,8}", fullmatch=True)


@given(
    st.builds(
        lambda parts, tag: "/".join(parts) + tag,
        st.lists(_part, min_size=1, max_size=3),
        st.just("") | st.from_regex(r":[A-Za-z0-9._-]{1,8}", fullmatch=True),
    )
)
def test_path_of_any_name_stays_in_the_folder_and_is_its_own(name: str) -> None:
    folder = Path("/models")
    path = Manifests(folder).path(name)
    assert path.parent == folder / "manifests"
    assert "/" not in path.name
    assert path.name.removesuffix(".json").replace("+", "/").replace("@", ":") == name
    if not name.endswith(".gguf"):
        assert str(parse_name(name)) == name


def test_get_damaged_manifest_says_how_to_mend_it(manifests: Manifests, tmp_path: Path) -> None:
    manifests.put(manifest("good"))
    (tmp_path / "manifests" / "bad@1.json").write_text('{"name": "bad:1"')
    with pytest.raises(LlmrunError, match="damaged") as caught:
        manifests.get("bad:1")
    assert caught.value.kind is BAD_FILE
    assert "llmrun rm bad:1" in caught.value.hint


def test_all_damaged_manifest_is_logged_and_left_out(
    manifests: Manifests, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("llmrun"), "propagate", True)
    manifests.put(manifest("good"))
    (tmp_path / "manifests" / "bad.json").write_bytes(b"\xff\x00")
    assert [m.name for m in manifests.all()] == ["good"]
    assert "bad.json" in caplog.text


def test_used_files_are_unknown_while_a_manifest_is_damaged(manifests: Manifests, tmp_path: Path) -> None:
    manifests.put(manifest("a", "files/x/a.gguf", "/abs/b.gguf"))
    assert manifests.used_files() == {tmp_path / "files/x/a.gguf", Path("/abs/b.gguf")}
    (tmp_path / "manifests" / "bad.json").write_text("")
    assert manifests.used_files() is None


def test_put_replaces_a_damaged_manifest(manifests: Manifests, tmp_path: Path) -> None:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "a.json").write_text("")
    manifests.put(manifest("a"))
    assert manifests.get("a") == manifest("a")


def test_put_name_that_the_disk_takes_for_another_is_refused(manifests: Manifests, tmp_path: Path) -> None:
    manifests.put(manifest("a:b"))
    # What a disk that ignores letter case would do when a:B is looked up.
    (tmp_path / "manifests" / "a@b.json").rename(tmp_path / "manifests" / "a@B.json")
    assert manifests.get("a:B") is None
    with pytest.raises(LlmrunError, match="letter case"):
        manifests.put(manifest("a:B"))


def test_get_facts_of_a_file_replaced_in_place_are_read_anew(manifests: Manifests, tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "x.gguf", size=64)
    stat = path.stat()
    entry = FileEntry(path=str(path), size=stat.st_size, modified=stat.st_mtime_ns, sha256=None)
    manifests.put(msgspec.structs.replace(manifest("x"), files=(entry,), facts=read_facts([path])))

    def parameters() -> int:
        found = manifests.get("x")
        assert found
        return found.facts.parameters

    assert parameters() == 16
    write_gguf(path, size=128)
    assert parameters() == 32
    path.unlink()
    assert parameters() == 16
