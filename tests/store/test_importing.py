from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from llmrun.config import Paths
from llmrun.store import Store
from llmrun.store.housekeeping import Housekeeper
from llmrun.store.importing import Found, Imported, Importer, find_all
from tests.store.conftest import files_under, sha256
from tests.store.models import gguf_bytes
from tests.support.tiny import Shape, write_llama, write_lora

KIND = "application/vnd.ollama.image."


@pytest.fixture
def person(tmp_path: Path) -> Path:
    folder = tmp_path / "a person 人\u3000🦙"
    folder.mkdir()
    return folder


def put(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def put_ollama(folder: Path, name: str, layers: dict[str, bytes], *, digest: str | None = None) -> None:
    """A model in Ollama's folder; `name` is NAMESPACE/MODEL/TAG."""
    entries = []
    for kind, body in layers.items():
        put(folder / "blobs" / f"sha256-{sha256(body)}", body)
        told = digest or f"sha256:{sha256(body)}"
        entries.append({"mediaType": KIND + kind, "digest": told, "size": len(body)})
    put(folder / "manifests" / "registry.ollama.ai" / name, json.dumps({"layers": entries}).encode())


def take_all(paths: Paths, person: Path, env: dict[str, str] | None = None) -> list[Imported]:
    importer = Importer(paths)
    return [importer.take(found) for found in find_all(person, env or {})]


def test_import_ollama_model_with_all_that_comes_with_it(
    person: Path, paths: Paths, store: Store, tmp_path: Path
) -> None:
    weights = gguf_bytes(tmp_path)
    put_ollama(
        person / ".ollama" / "models",
        "library/tiny/1b",
        {
            "model": weights,
            "template": b"{{ if .System }}<s>{{ .System }}{{ end }}{{ .Prompt }}|{{ .Response }}",
            "system": b"Be brief.",
            "params": b'{"temperature": 0.5, "stop": ["|", "<s>"]}',
            "license": b"MIT",
        },
    )
    (one,) = take_all(paths, person)
    assert (one.state, one.name, one.found.program) == ("new", "tiny:1b", "Ollama")
    model = store.resolve("tiny:1b")
    assert hashlib.sha256(model.path.read_bytes()).hexdigest() == sha256(weights) == model.sha256
    assert (model.system, model.license, model.in_place) == ("Be brief.", "MIT", True)
    assert (model.options.temperature, model.options.stop) == (0.5, ("|", "<s>"))
    assert model.template
    assert "{%- macro" in model.template
    assert [(check.state, check.digest) for check in Housekeeper(paths).verify()] == [("ok", True)]


def test_import_copies_nothing_and_a_second_time_changes_nothing(
    person: Path, paths: Paths, store: Store, tmp_path: Path
) -> None:
    put_ollama(person / ".ollama" / "models", "me/tiny/latest", {"model": gguf_bytes(tmp_path)})
    before = files_under(person)
    (one,) = take_all(paths, person)
    assert [name for name in files_under(paths.models) if not name.endswith(".lock")] == [
        "manifests/tiny.json"
    ]
    listed = store.list()
    assert [(again.state, again.name) for again in take_all(paths, person)] == [("known", one.name)]
    assert store.list() == listed
    assert files_under(person) == before


def test_import_of_a_model_that_vanished_is_listed_as_missing(
    person: Path, paths: Paths, store: Store, tmp_path: Path
) -> None:
    put_ollama(person / ".ollama" / "models", "library/tiny/1b", {"model": gguf_bytes(tmp_path)})
    take_all(paths, person)
    shutil.rmtree(person / ".ollama")
    (model,) = store.list()
    assert model.missing
    assert Housekeeper(paths).litter() == []
    assert store.remove(model.name).in_place


def test_import_ollama_model_of_the_cloud_is_left(person: Path, paths: Paths) -> None:
    put_ollama(person / ".ollama" / "models", "library/odd/1b", {"system": b"a cloud model"})
    assert take_all(paths, person) == []


def test_import_ollama_model_brings_its_adapter_in_place(
    person: Path, paths: Paths, store: Store, tmp_path: Path
) -> None:
    weights = write_llama(tmp_path / "m.gguf").read_bytes()
    lora = write_lora(tmp_path / "lora.gguf").read_bytes()
    put_ollama(person / ".ollama" / "models", "library/tiny/1b", {"adapter": lora, "model": weights})
    (taken,) = take_all(paths, person)
    model = store.resolve(taken.name)
    assert [one.path.read_bytes() == lora for one in model.adapters] == [True]
    assert model.in_place
    wrong = write_lora(tmp_path / "wrong.gguf", Shape(embd=128)).read_bytes()
    put_ollama(person / ".ollama" / "models", "library/odd/1b", {"model": weights + b" ", "adapter": wrong})
    odd = next(one for one in take_all(paths, person) if one.found.name == "odd:1b")
    assert (odd.state, "blk.0.attn_q" in odd.reason) == ("refused", True)


@pytest.mark.parametrize("digest", ["sha256:../../../etc/passwd", "sha256:00", "md5:00"])
def test_import_ollama_manifest_with_a_hostile_digest_is_left(
    person: Path, paths: Paths, digest: str
) -> None:
    put_ollama(person / ".ollama" / "models", "library/odd/1b", {"model": b"GGUF"}, digest=digest)
    put(person / ".ollama" / "models" / "manifests" / "r" / "n" / "m" / "broken", b"{")
    assert take_all(paths, person) == []


def test_import_file_that_is_no_model_is_refused_with_the_reason(person: Path, paths: Paths) -> None:
    put_ollama(person / ".ollama" / "models", "library/odd/1b", {"model": b"GGUF"})
    (one,) = take_all(paths, person)
    assert one.state == "refused"
    assert "not a usable GGUF" in one.reason


def test_find_all_knows_the_other_programs(person: Path, tmp_path: Path) -> None:
    data = gguf_bytes(tmp_path)
    studio = person / ".lmstudio" / "models" / "Publisher" / "Some-Model-GGUF"
    put(studio / "Some-Model-Q4_K_M.gguf", data)
    put(studio / "mmproj-model-f16.gguf", data)
    snapshots = person / ".cache" / "huggingface" / "hub" / "models--Org--Other-GGUF" / "snapshots"
    put(snapshots / "c0ffee" / "other-Q8_0-00001-of-00002.gguf", data)
    put(snapshots / "c0ffee" / "other-Q8_0-00002-of-00002.gguf", data)
    put(person / "llama" / "Org_Third_third-q4_0.gguf", data)
    found = find_all(person, {"LLAMA_CACHE": str(person / "llama")})
    assert [(one.program, one.name, one.vendor, [role for _, role in one.files]) for one in found] == [
        ("LM Studio", "Some-Model:Q4_K_M", "Publisher", ["weights", "projector"]),
        ("Hugging Face", "Other:Q8_0", "Org", ["weights", "weights"]),
        ("llama.cpp", "Org_Third_third:q4_0", "", ["weights"]),
    ]


def test_find_all_where_variables_say(person: Path, tmp_path: Path) -> None:
    data = gguf_bytes(tmp_path)
    put_ollama(tmp_path / "o", "library/tiny/latest", {"model": data})
    put(tmp_path / "hub" / "models--A--B" / "snapshots" / "1" / "b.gguf", data)
    env = {"OLLAMA_MODELS": str(tmp_path / "o"), "HF_HUB_CACHE": str(tmp_path / "hub")}
    assert [one.name for one in find_all(person, env)] == ["tiny", "b"]
    assert find_all(person, {}) == []


def test_take_gives_a_name_that_is_free(paths: Paths, store: Store, tmp_path: Path) -> None:
    files = [put(tmp_path / str(i) / "m.gguf", gguf_bytes(tmp_path, seed=i)) for i in range(3)]
    importer = Importer(paths)
    names = [importer.take(Found("x", "M:1b", "Vendor", ((file, "weights"),))).name for file in files]
    assert names == ["m:1b", "vendor/m:1b", "m-2:1b"]
    assert len(store.list()) == 3
