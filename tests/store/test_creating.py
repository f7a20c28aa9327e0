from __future__ import annotations

from pathlib import Path

import pytest

from llmrun.config import Paths
from llmrun.errors import DIGEST, UNKNOWN_MODEL, LlmrunError
from llmrun.store import Store, StoredModel, parse_modelfile
from llmrun.types import Message
from tests.store.conftest import files_under, sha256
from tests.store.models import gguf_bytes, write_gguf
from tests.store.server import Host

PARENT = """FROM {source}
PARAMETER temperature 0.5
PARAMETER stop A
TEMPLATE {{{{ messages[0].content }}}}
SYSTEM Be brief.
MESSAGE user Hi
LICENSE mit
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_gguf(tmp_path / "a b.gguf")


@pytest.fixture
def parent(store: Store, file: Path) -> StoredModel:
    return store.create("parent", parse_modelfile(PARENT.format(source=file)))


def test_create_from_a_file_registers_it_in_place(store: Store, file: Path, parent: StoredModel) -> None:
    assert (parent.name, parent.path, parent.in_place) == ("parent", file, True)
    assert parent.system == "Be brief."
    assert parent.messages == (Message(role="user", content="Hi"),)
    assert store.list() == [parent]


def test_create_from_a_model_inherits_what_it_leaves_unsaid(store: Store, parent: StoredModel) -> None:
    child = store.create("child", parse_modelfile("FROM parent\nPARAMETER top_k 7\nPARAMETER stop B"))
    assert (child.options.temperature, child.options.top_k, child.options.stop) == (0.5, 7, ("A", "B"))
    assert (child.system, child.template, child.messages) == (parent.system, parent.template, parent.messages)
    assert (child.license, child.files) == ("mit", parent.files)


def test_create_what_is_said_wins_and_empty_quotes_take_away(store: Store, parent: StoredModel) -> None:
    text = f'FROM {parent.name}\nPARAMETER temperature 0\nSYSTEM ""\nTEMPLATE ""\nMESSAGE assistant Yo\n'
    child = store.create("child", parse_modelfile(text))
    assert (child.options.temperature, child.system, child.template) == (0, None, None)
    assert child.messages == (Message(role="assistant", content="Yo"),)


def test_create_over_itself_changes_the_model_and_keeps_its_files(
    store: Store, host: Host, paths: Paths, tmp_path: Path
) -> None:
    url = host.put("/m.gguf", gguf_bytes(tmp_path))
    made = store.create("mine", parse_modelfile(f"FROM {url}\nSYSTEM One"))
    assert not made.in_place
    files = files_under(paths.models / "files")
    again = store.create("mine", parse_modelfile("FROM mine\nSYSTEM Two"))
    assert (again.system, again.files) == ("Two", made.files)
    assert files_under(paths.models / "files") == files


def test_create_replacing_a_model_frees_files_that_no_other_uses(
    store: Store, host: Host, paths: Paths, tmp_path: Path
) -> None:
    url = host.put("/m.gguf", gguf_bytes(tmp_path))
    store.create("mine", parse_modelfile(f"FROM {url}"))
    other = write_gguf(tmp_path / "other.gguf", seed=1)
    store.create("mine", parse_modelfile(f"FROM {other}"))
    assert files_under(paths.models / "files") == []


def test_create_from_what_is_not_here_pulls_it_once(
    store: Store, host: Host, catalogue: Path, tmp_path: Path
) -> None:
    data = gguf_bytes(tmp_path)
    url = host.put("/m.gguf", data)
    (catalogue / "base@1b.modelfile").write_text(f"FROM {url}\nSHA256 {sha256(data)}\nSYSTEM Base")
    child = store.create("child", parse_modelfile("FROM base:1b\nPARAMETER seed 1"))
    assert child.system == "Base"
    assert [model.name for model in store.list()] == ["base:1b", "child"]
    assert child.files == store.resolve("base:1b").files


def test_create_pinned_to_other_bytes_is_refused(store: Store, host: Host, tmp_path: Path) -> None:
    url = host.put("/m.gguf", gguf_bytes(tmp_path))
    store.create("mine", parse_modelfile(f"FROM {url}"))
    for line in (f"SHA256 {'0' * 64}", "SIZE 1"):
        with pytest.raises(LlmrunError) as caught:
            store.create("other", parse_modelfile(f"FROM mine\n{line}"))
        assert caught.value.kind is DIGEST


def test_create_what_cannot_be_done_leaves_nothing(store: Store, parent: StoredModel) -> None:
    cases = {
        "FROM parent\nADAPTER ./lora.gguf": UNKNOWN_MODEL,
        "FROM nothing-like-it": UNKNOWN_MODEL,
        "FROM ./missing.gguf": UNKNOWN_MODEL,
    }
    for text, kind in cases.items():
        with pytest.raises(LlmrunError) as caught:
            store.create("child", parse_modelfile(text))
        assert caught.value.kind is kind
    with pytest.raises(LlmrunError, match="own name"):
        store.create("hf.co/a/b", parse_modelfile("FROM parent"))
    assert [model.name for model in store.list()] == [parent.name]


def test_create_from_a_source_takes_nothing_of_models_that_were_made_of_it(
    store: Store, host: Host, tmp_path: Path
) -> None:
    url = host.put("/m-Q8_0.gguf", gguf_bytes(tmp_path))
    store.create("pirate", parse_modelfile(f"FROM {url}\nSYSTEM Arr.\nPARAMETER top_k 3"))
    plain = store.create("plain", parse_modelfile(f"FROM {url}"))
    assert (plain.system, plain.options.top_k) == (None, None)
    pulled = store.pull(url)
    assert (pulled.name, pulled.system) == ("m:Q8_0", None)
    assert store.resolve(url) == pulled
    assert store.resolve("pirate").system == "Arr."
    assert sum(seen.sent for seen in host.gets("/m-Q8_0.gguf")) == pulled.size
