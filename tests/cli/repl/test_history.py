from __future__ import annotations

from pathlib import Path

from prompt_toolkit.history import FileHistory

from llmrun.cli.repl import history
from llmrun.cli.repl.history import History


def test_history_is_kept_in_prompt_toolkits_format_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "state" / "h"
    for entry in ("one", "two\nlines", "é"):
        History(path).store_string(entry)
    assert [*FileHistory(path).load_history_strings()] == ["é", "two\nlines", "one"]
    assert path.stat().st_mode & 0o077 == 0


def test_history_that_grew_long_keeps_its_newer_entries_whole(tmp_path: Path) -> None:
    path = tmp_path / "h"
    kept = History(path)
    size = history.LIMIT // 100
    for number in range(110):
        kept.store_string(f"{number:03}" + "x" * size)
    entries = [*History(path).load_history_strings()]
    assert entries[0].startswith("109")
    assert 40 < len(entries) < 60
    assert {len(entry) for entry in entries} == {size + 3}
