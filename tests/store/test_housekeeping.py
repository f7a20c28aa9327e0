from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from llmrun.config import Paths
from llmrun.errors import BAD_FILE, LlmrunError
from llmrun.store import Store, StoredModel
from llmrun.store.housekeeping import Housekeeper, disk_size
from llmrun.store.progress import PullProgress
from llmrun.store.shelf import Shelf
from tests.store.conftest import files_under
from tests.store.models import gguf_bytes, write_gguf
from tests.store.server import Host


@pytest.fixture
def keeper(paths: Paths) -> Housekeeper:
    return Housekeeper(paths)


@pytest.fixture
def model(store: Store, host: Host, tmp_path: Path) -> StoredModel:
    return store.pull(host.put("/m-Q4_0.gguf", gguf_bytes(tmp_path, size=100_000)))


def put(path: Path, size: int = 10_000) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    return path


def used_by_all(paths: Paths) -> int:
    """What `du` says of the models folder."""
    return disk_size(paths.models)


def test_litter_of_no_store_is_none_and_makes_none(keeper: Housekeeper, paths: Paths) -> None:
    assert keeper.litter() == keeper.prune() == keeper.verify() == []
    assert not paths.models.exists()


def test_litter_of_a_store_in_use_is_none(keeper: Housekeeper, model: StoredModel) -> None:
    assert model.path.is_file()
    assert keeper.litter() == []


def test_prune_frees_to_the_byte_what_the_dry_run_says(
    keeper: Housekeeper, paths: Paths, model: StoredModel
) -> None:
    models = paths.models
    partial = put(models / "partial" / "0123" / "m.gguf.part").parent
    with (partial / "with holes").open("wb") as file:
        file.truncate(1 << 30)
    whole = put(models / "files" / "old-abc" / "old.gguf").parent
    beside = put(model.path.parent / "stray.gguf")
    blob = put(models / "blobs" / "sha256-00.gguf")
    upload = put(models / "blobs" / ".a.tmp")
    manifest = put(models / "manifests" / ".b.tmp")
    found = keeper.litter()
    assert {(one.path, one.kind) for one in found} == {
        (partial, "partial"),
        (whole, "orphan"),
        (beside, "orphan"),
        (blob, "orphan"),
        (upload, "temporary"),
        (manifest, "temporary"),
    }
    before = used_by_all(paths)
    assert keeper.prune() == found
    assert used_by_all(paths) == before - sum(one.size for one in found)
    assert keeper.litter() == []
    assert all(check.state == "ok" for check in keeper.verify())


def test_disk_size_is_what_du_says(paths: Paths, model: StoredModel) -> None:
    assert model.path.is_file()
    du = subprocess.run(["du", "-s", "-B1", paths.models], capture_output=True, text=True, check=True)
    assert disk_size(paths.models) == int(du.stdout.split()[0])


def test_prune_leaves_a_pull_under_way(keeper: Housekeeper, paths: Paths) -> None:
    part = put(paths.models / "partial" / "busy" / "m.gguf.part")
    holder = f"""
import sys
from pathlib import Path
from llmrun.store.shelf import Shelf
with Shelf(Path({str(paths.models)!r})).key_lock("busy", lambda: None):
    print("held", flush=True)
    sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", holder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        assert keeper.prune() == []
        process.kill()
    assert [one.path for one in keeper.prune()] == [part.parent]


def test_litter_with_a_damaged_manifest_is_refused(
    keeper: Housekeeper, paths: Paths, model: StoredModel
) -> None:
    put(paths.models / "manifests" / "broken.json")
    for act in (keeper.litter, keeper.prune, keeper.verify):
        with pytest.raises(LlmrunError) as caught:
            act()
        assert caught.value.kind is BAD_FILE
    assert model.path.is_file()


def test_verify_tells_missing_shortened_and_damaged_files(
    keeper: Housekeeper, model: StoredModel, progress: list[PullProgress]
) -> None:
    whole = model.path.read_bytes()
    (one,) = keeper.verify(model.name, on_progress=progress.append)
    assert (one.state, one.digest) == ("ok", True)
    assert progress[-1].completed == progress[-1].total == len(whole)
    for content, state in (
        (whole[:-1] + bytes([whole[-1] ^ 1]), "damaged"),
        (whole[:-1], "size"),
        (None, "missing"),
    ):
        if content is None:
            model.path.unlink()
        else:
            model.path.write_bytes(content)
        assert [check.state for check in keeper.verify()] == [state]


def test_verify_of_a_file_in_place_reads_its_header(
    keeper: Housekeeper, store: Store, tmp_path: Path
) -> None:
    file = write_gguf(tmp_path / "mine.gguf")
    store.copy(str(file), "mine")
    assert [(one.state, one.digest) for one in keeper.verify("mine")] == [("ok", False)]
    file.write_bytes(b"x" * file.stat().st_size)
    assert [one.state for one in keeper.verify("mine")] == ["damaged"]


def test_remove_of_the_last_name_leaves_nothing_to_prune(
    keeper: Housekeeper, store: Store, paths: Paths, model: StoredModel
) -> None:
    store.copy(model.name, "other")
    assert store.remove(model.name).freed == 0
    assert store.remove("other").freed == model.size
    assert keeper.litter() == []
    assert files_under(paths.models / "files") == []


def test_under_way_makes_no_lock_file(paths: Paths) -> None:
    assert not Shelf(paths.models).under_way("nobody")
    assert not paths.models.exists()
