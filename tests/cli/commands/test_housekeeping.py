"""`verify`, `prune`, `uninstall`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from llmrun.config import Paths
from tests.api.scripted import MODEL
from tests.cli.conftest import Shell


@pytest.fixture
def litter(paths: Paths) -> Path:
    path = paths.models / "files" / "old" / "old.gguf"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x" * 5000)
    return path


def test_verify_whole_models_are_ok(stocked: Shell) -> None:
    done = stocked.run("verify")
    assert (done.code, "ok (header)" in done.out) == (0, True)
    (record,) = json.loads(stocked.run("verify", MODEL, "--json").out)
    assert (record["name"], record["state"], record["digest"]) == (MODEL, "ok", False)
    assert stocked.run("verify", "nobody").code == 3


def test_verify_missing_file_is_told_and_breaks_nothing(
    shell: Shell, paths: Paths, tiny_gguf: Path, tmp_path: Path
) -> None:
    from llmrun.store import Store

    file = tmp_path / "gone.gguf"
    shutil.copy(tiny_gguf, file)
    Store(paths).copy(str(file), "gone")
    file.unlink()
    done = shell.run("verify", "gone")
    assert done.code == 1
    assert "missing" in done.out
    assert "1 of 1 models are not whole: gone" in done.err
    assert "file missing" in shell.run("list").out


def test_prune_dry_run_shows_and_keeps_then_prune_frees(stocked: Shell, litter: Path) -> None:
    done = stocked.run("prune", "--dry-run")
    assert (done.code, str(litter.parent) in done.out) == (0, True)
    assert "would be freed" in done.err
    assert litter.is_file()
    (record,) = json.loads(stocked.run("prune", "--json").out)
    assert record["kind"] == "orphan"
    assert not litter.exists()
    assert "0 bytes freed" in stocked.run("prune").err
    assert stocked.run("show", MODEL).code == 0


def test_uninstall_lists_and_only_purge_removes(stocked: Shell, home: Path, tiny_gguf: Path) -> None:
    stocked.env["HOME"] = str(home.parent)
    done = stocked.run("uninstall")
    assert (done.code, "manifests" in done.out) == (0, True)
    assert "uninstall --purge" in done.err
    done = stocked.run("uninstall", "--purge")
    assert (done.code, "--yes" in done.err) == (2, True)
    assert home.exists()
    assert stocked.run("uninstall", "--purge", "--yes").code == 0
    assert not home.exists()
    assert tiny_gguf.is_file()


def test_uninstall_beside_a_running_daemon_is_refused(stocked: Shell, home: Path, paths: Paths) -> None:
    from llmrun.daemon.lock import DaemonAddress, DaemonLock

    lock = DaemonLock(paths)
    lock.acquire()
    try:
        lock.publish(DaemonAddress(pid=1, host="127.0.0.1", port=1, version="0", started=0.0))
        done = stocked.run("uninstall", "--purge", "--yes")
    finally:
        lock.release()
    assert (done.code, "stop --daemon" in done.err) == (1, True)
    assert home.exists()
