"""A full and a read-only disk: small file systems of our own, where mounting is allowed."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from llmrun.config import Paths
from llmrun.errors import DISK, LlmrunError
from llmrun.store import PullProgress, Store, disk
from tests.store.conftest import files_under
from tests.store.models import gguf_bytes
from tests.store.server import Host

MB = 1 << 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small disk 模型"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=12M", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting is not allowed here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_pull_disk_that_fills_up_keeps_what_came_and_goes_on_when_there_is_room(
    host: Host, small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "SPARE", 0)
    model = gguf_bytes(tmp_path, size=8 * MB)
    url = host.put("/x.gguf", model)
    store = Store(Paths.find({"LLMRUN_HOME": str(small_disk)}))
    filler = small_disk / "filler"

    def fill(progress: PullProgress) -> None:
        if progress.completed >= 2 * MB and not filler.exists():
            filler.write_bytes(bytes(7 * MB))

    with pytest.raises(LlmrunError) as caught:
        store.pull(url, on_progress=fill)
    assert caught.value.kind is DISK
    assert "full" in caught.value.message or "are free" in caught.value.message
    assert store.list() == []
    filler.unlink()
    before = host.sent("/x.gguf")
    assert store.pull(url).path.read_bytes() == model
    assert host.sent("/x.gguf") - before <= len(model) - 2 * MB + disk.BLOCK
    assert files_under(small_disk / "models" / "partial") == []


def test_pull_disk_that_is_too_small_is_said_before_a_byte_comes(
    host: Host, small_disk: Path, tmp_path: Path
) -> None:
    url = host.put("/x.gguf", gguf_bytes(tmp_path, size=MB))
    store = Store(Paths.find({"LLMRUN_HOME": str(small_disk)}))
    with pytest.raises(LlmrunError, match="are needed") as caught:
        store.pull(url)
    assert caught.value.kind is DISK
    assert files_under(small_disk / "models" / "files") == []
    assert store.preview(url).fits_disk is False


def test_store_on_a_read_only_disk_lists_and_says_what_it_cannot_do(
    host: Host, small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "SPARE", 0)
    store = Store(Paths.find({"LLMRUN_HOME": str(small_disk)}))
    found = store.pull(host.put("/x.gguf", gguf_bytes(tmp_path)))
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert store.list() == [found]
    assert store.resolve(found.name) == found
    assert store.pull(host.url("/x.gguf")) == found
    for change in (
        lambda: store.pull(host.put("/y.gguf", gguf_bytes(tmp_path, seed=1))),
        lambda: store.remove(found.name),
        lambda: store.copy(found.name, "other"),
    ):
        with pytest.raises(LlmrunError, match="Read-only") as caught:
            change()
        assert caught.value.kind is DISK
        assert "LLMRUN_HOME" in caught.value.hint
