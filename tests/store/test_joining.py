"""Adapters and drafts belong to their model, whatever is done with it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from llmrun.config import Paths
from llmrun.errors import BAD_FILE, INVALID_REQUEST, NOT_FOUND, UNKNOWN_MODEL, LlmrunError
from llmrun.store import Store, format_modelfile, gather, modelfile_of, parse_modelfile
from llmrun.store.companions import Role
from llmrun.store.facts import Facts
from llmrun.store.housekeeping import Housekeeper
from llmrun.store.inspecting import inspect
from tests.store.conftest import files_under, sha256
from tests.store.server import Fault, Host
from tests.support.tiny import Shape, write_llama, write_lora


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "made here 模型"
    folder.mkdir()
    write_llama(folder / "base.gguf")
    write_llama(folder / "small.gguf", Shape(layers=1, seed=5))
    write_lora(folder / "one.gguf", seed=1)
    write_lora(folder / "two.gguf", seed=2)
    return folder


def bytes_of(folder: Path, name: str) -> bytes:
    return (folder / f"{name}.gguf").read_bytes()


def test_create_with_files_beside_uses_them_in_place_and_shows_them_again(store: Store, folder: Path) -> None:
    text = "FROM ./base.gguf\nADAPTER ./one.gguf\nADAPTER ./two.gguf\nDRAFT ./small.gguf\n"
    made = store.create("mine", parse_modelfile(text).below(folder))
    assert [one.path for one in made.adapters] == [folder / "one.gguf", folder / "two.gguf"]
    assert made.draft
    assert made.draft.path == folder / "small.gguf"
    assert made.size == sum(path.stat().st_size for path in folder.iterdir())
    again = store.create("again", parse_modelfile(format_modelfile(modelfile_of(made))))
    assert (again.files, again.adapters, again.draft) == (made.files, made.adapters, made.draft)
    assert store.list() == [again, made]


def test_pull_brings_adapter_and_draft_and_rm_frees_them(
    host: Host, store: Store, paths: Paths, folder: Path
) -> None:
    base = host.put("/m/base.gguf", bytes_of(folder, "base"))
    lora = host.put("/l/base.gguf", bytes_of(folder, "one"))  # the same name as the weights'
    small = host.put("/d/small.gguf", bytes_of(folder, "small"))
    text = f"FROM {base}\nSHA256 {sha256(bytes_of(folder, 'base'))}\nADAPTER {lora}\nDRAFT {small}\n"
    made = store.create("mine", parse_modelfile(text))
    assert made.draft
    kept = {path.read_bytes() for path in (made.path, made.adapters[0].path, made.draft.path)}
    assert kept == {bytes_of(folder, name) for name in ("base", "one", "small")}
    keeper = Housekeeper(paths)
    assert [check.state for check in keeper.verify()] == ["ok"] * 3
    assert all(check.digest for check in keeper.verify())
    assert keeper.litter() == []
    copied = store.copy("mine", "copy")
    assert copied.adapters == made.adapters
    before = len(host.requests)
    again = store.create("third", parse_modelfile(format_modelfile(modelfile_of(made))))
    assert again.adapters == made.adapters
    assert [seen.path for seen in host.requests[before:]] == []
    for name in ("mine", "copy"):
        assert store.remove(name).freed == 0
    assert store.remove("third").freed == made.size
    assert files_under(paths.models / "files") == []


def test_modelfile_of_a_model_names_all_its_sources_again(host: Host, store: Store, folder: Path) -> None:
    one, two = (host.put(f"/{name}/base.gguf", bytes_of(folder, "base")) for name in "ab")
    digest = sha256(bytes_of(folder, "base"))
    host.faults["/a/base.gguf"].extend([Fault(status=404)] * 9)
    made = store.create("mine", parse_modelfile(f"FROM {one}\nSOURCE {two}\nSHA256 {digest}\n"))
    shown = modelfile_of(made)
    assert [str(source) for source in shown.sources] == [two, one]
    assert parse_modelfile(format_modelfile(shown)) == shown
    child = store.create("child", parse_modelfile("FROM mine\nSYSTEM x"))
    assert modelfile_of(child).sources == shown.sources


def test_pull_damaged_adapter_registers_nothing(host: Host, store: Store, folder: Path) -> None:
    base = host.put("/base.gguf", bytes_of(folder, "base"))
    bad = host.put("/lora.gguf", bytes_of(folder, "one")[:-64])
    with pytest.raises(LlmrunError, match=r"lora\.gguf") as caught:
        store.create("mine", parse_modelfile(f"FROM {base}\nADAPTER {bad}\n"))
    assert caught.value.kind is BAD_FILE
    missing = parse_modelfile(f"FROM {base}\nADAPTER {host.address}/none.gguf\n")
    with pytest.raises(LlmrunError) as caught:
        store.create("mine", missing)
    assert caught.value.kind is NOT_FOUND
    assert store.list() == []


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("ADAPTER ./small.gguf", "adapter: it is no adapter"),
        ("ADAPTER ./wide.gguf", "128 × 128 weights, and the model has 64 × 64"),
        ("DRAFT ./one.gguf", "draft: it is no draft"),
    ],
)
def test_create_with_a_file_that_does_not_fit_is_refused_with_the_reason(
    store: Store, folder: Path, line: str, what: str
) -> None:
    write_lora(folder / "wide.gguf", Shape(embd=128))
    with pytest.raises(LlmrunError, match=what) as caught:
        store.create("mine", parse_modelfile(f"FROM ./base.gguf\n{line}").below(folder))
    assert caught.value.kind is BAD_FILE
    assert store.list() == []


def test_create_from_a_model_with_adapter_and_draft_adds_adapters_and_replaces_the_draft(
    store: Store, folder: Path
) -> None:
    text = "FROM ./base.gguf\nADAPTER ./one.gguf\nDRAFT ./small.gguf\n"
    store.create("parent", parse_modelfile(text).below(folder))
    write_llama(folder / "other.gguf", Shape(layers=1, seed=6))
    child = store.create(
        "child", parse_modelfile("FROM parent\nADAPTER ./two.gguf\nDRAFT ./other.gguf\n").below(folder)
    )
    assert [one.path.name for one in child.adapters] == ["one.gguf", "two.gguf"]
    assert child.draft
    assert child.draft.path.name == "other.gguf"
    plain = store.create("plain", parse_modelfile("FROM parent\nSYSTEM x"))
    assert (plain.adapters, plain.draft) == (store.resolve("parent").adapters, store.resolve("parent").draft)


def test_create_draft_that_is_a_stored_model_shares_its_files(
    host: Host, store: Store, paths: Paths, folder: Path
) -> None:
    small = store.pull(host.put("/small-f32.gguf", bytes_of(folder, "small")))
    made = store.create("mine", parse_modelfile(f"FROM {folder}/base.gguf\nDRAFT {small.name}"))
    assert made.draft
    assert (made.draft.path, made.draft.source) == (small.path, small.name)
    assert store.remove(small.name).freed == 0
    assert made.draft.path.is_file()
    assert store.remove("mine").freed == small.size
    assert files_under(paths.models / "files") == []


def test_pull_ollama_model_brings_its_adapter(host: Host, store: Store, folder: Path) -> None:
    layers = {"adapter": bytes_of(folder, "one"), "model": bytes_of(folder, "base")}
    host.put_ollama("library/tiny", "1b", layers)
    model = store.pull(f"ollama://{host.address.removeprefix('http://')}/library/tiny:1b")
    (adapter,) = model.adapters
    assert adapter.path.read_bytes() == layers["adapter"]
    assert adapter.source == ""
    shown = modelfile_of(model)
    assert (shown.adapters, shown.size) == ((), sum(map(len, layers.values())))
    assert store.remove(model.name).freed == model.size


def test_adapter_whose_file_vanished_makes_its_model_missing_and_breaks_nothing(
    store: Store, folder: Path, paths: Paths
) -> None:
    made = store.create("mine", parse_modelfile("FROM ./base.gguf\nADAPTER ./one.gguf").below(folder))
    (folder / "one.gguf").unlink()
    (listed,) = store.list()
    assert listed.missing
    assert [check.state for check in Housekeeper(paths).verify()] == ["ok", "missing"]
    with pytest.raises(LlmrunError, match=r"one\.gguf"):
        store.resolve(made.name)
    assert store.remove("mine").in_place


def test_adapter_replaced_in_place_is_taken_as_it_is_now(store: Store, folder: Path) -> None:
    store.create("mine", parse_modelfile("FROM ./base.gguf\nADAPTER ./one.gguf").below(folder))
    write_lora(folder / "one.gguf", rank=8)
    (adapter,) = store.resolve("mine").adapters
    assert adapter.size == (folder / "one.gguf").stat().st_size
    assert adapter.source == str(folder / "one.gguf")


def test_preview_counts_what_comes_beside(host: Host, store: Store, folder: Path, catalogue: Path) -> None:
    base = host.put("/base.gguf", bytes_of(folder, "base"))
    lora = host.put("/lora.gguf", bytes_of(folder, "one"))
    digest = sha256(bytes_of(folder, "base"))
    (catalogue / "mine@1.modelfile").write_text(f"FROM {base}\nSHA256 {digest}\nADAPTER {lora}\n")
    seen = store.preview("mine")
    assert [(file.name, file.role, file.here) for file in seen.files] == [
        ("base.gguf", "weights", False),
        ("lora.gguf", "adapter", False),
    ]
    assert seen.to_fetch == len(bytes_of(folder, "base")) + len(bytes_of(folder, "one"))
    assert store.pull("mine").adapters
    before = len(host.requests)
    assert store.pull("mine").name == "mine:1"
    assert len(host.requests) == before


def test_adapter_in_several_files_is_refused(store: Store, folder: Path) -> None:
    for number in (1, 2):
        write_lora(folder / f"l-0000{number}-of-00002.gguf")
    text = "FROM ./base.gguf\nADAPTER ./l-00001-of-00002.gguf"
    with pytest.raises(LlmrunError, match="2 files") as caught:
        store.create("mine", parse_modelfile(text).below(folder))
    assert caught.value.kind is INVALID_REQUEST


def test_create_whose_base_is_removed_meanwhile_says_that_it_is_gone(
    host: Host, store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, small = (host.put(f"/{name}.gguf", bytes_of(folder, name)) for name in ("base", "small"))
    recipe = parse_modelfile(f"FROM {base}\nDRAFT {small}")
    held = store.pull(base)
    store.pull(small)

    def remove_then_inspect(files: Sequence[tuple[Path, Role]]) -> Facts:
        if held.path.is_file():
            store.remove(held.name)
        return inspect(files)

    monkeypatch.setattr(gather, "inspect", remove_then_inspect)
    with pytest.raises(LlmrunError, match="is gone") as caught:
        store.create("mine", recipe)
    assert caught.value.kind is UNKNOWN_MODEL
    assert store.create("mine", recipe).draft
