from __future__ import annotations

from pathlib import Path

import pytest

from llmrun.config import Paths
from llmrun.store import Store
from llmrun.store.uninstall import forget_completions, remove, traces
from tests.store.models import write_gguf


@pytest.fixture
def used(paths: Paths, store: Store, tmp_path: Path) -> Path:
    """A home in use; a file of the person's, used in place."""
    file = write_gguf(tmp_path / "mine.gguf")
    store.copy(str(file), "mine")
    for path in (
        paths.models / "files" / "m" / "m.gguf",
        paths.models / "partial" / "0" / "m.part",
        paths.state / "daemon.lock",
        paths.state / "chat_history",
        paths.logs / "daemon.log",
        paths.logs / "daemon.log.1",
        paths.state / "chats" / "1.json",
        paths.state / "key-usage.json",
        paths.cache / "steps" / "1.json",
        paths.config / "keys.json",
        paths.config / "keys.lock",
        paths.config / "config.toml",
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    return file


def test_remove_takes_all_and_the_folders_with_it(paths: Paths, used: Path, tmp_path: Path) -> None:
    home = tmp_path / "person"
    completion = home / ".zfunc" / "_llmrun"
    completion.parent.mkdir(parents=True)
    completion.write_text("#compdef llmrun")
    found = traces(paths, home)
    assert {trace.path.name for trace in found} >= {"files", "daemon.log.1", "config.toml", "_llmrun"}
    remove(paths, found)
    assert traces(paths, home) == []
    assert not paths.models.parent.exists()
    assert used.is_file()


def test_remove_leaves_what_is_not_llmruns(paths: Paths, used: Path, tmp_path: Path) -> None:
    strangers = [paths.models / "thesis.txt", paths.state / "notes", paths.models.parent / "photos" / "a.jpg"]
    for path in strangers:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("dear")
    remove(paths, traces(paths, tmp_path))
    assert all(path.read_text() == "dear" for path in strangers)
    assert not paths.logs.exists()
    assert used.is_file()


def test_traces_of_a_clean_machine_are_none(paths: Paths, tmp_path: Path) -> None:
    assert traces(paths, tmp_path) == []
    remove(paths, [])
    assert not paths.models.parent.exists()


def test_forget_completions_takes_the_line_that_reads_them_and_no_other(tmp_path: Path) -> None:
    script, start = tmp_path / ".bash_completions" / "llmrun.sh", tmp_path / ".bashrc"
    mine = b"alias ll='ls -l'\nexport X=\xff\n"
    start.write_bytes(mine + f"\nsource '{script}'\n".encode())
    start.chmod(0o640)
    script.parent.mkdir()
    script.write_text("x")
    forget_completions(tmp_path)
    assert str(script).encode() in start.read_bytes()  # they are still there
    script.unlink()
    forget_completions(tmp_path)
    assert start.read_bytes() == mine + b"\n"
    assert start.stat().st_mode & 0o777 == 0o640
    forget_completions(tmp_path / "nobody")
