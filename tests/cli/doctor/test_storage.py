from __future__ import annotations

from pathlib import Path

import pytest

from llmrun.cli.doctor import storage
from llmrun.config import Paths


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths.find({"LLMRUN_HOME": str(tmp_path / "not" / "there" / "yet")})


def test_folders_that_do_not_exist_yet_are_fine_and_stay_away(paths: Paths) -> None:
    (finding,) = storage.folders(paths)
    assert finding.level == "ok"
    assert not paths.models.exists()


def test_folders_in_the_way_of_a_file_are_broken(paths: Paths) -> None:
    paths.models.parent.mkdir(parents=True)
    paths.models.write_text("a file")
    (finding,) = storage.folders(paths)
    assert finding.level == "broken"
    assert str(paths.models) in finding.text
    assert finding.mend


def test_space_that_is_short_is_a_warning(tmp_path: Path) -> None:
    assert storage.space(tmp_path, 5_000_000_000).level == "ok"
    assert storage.space(tmp_path, 100_000_000).level == "warning"


def test_models_of_an_empty_store(paths: Paths) -> None:
    assert storage.check_storage(paths)[-1].text == "0, 0 bytes"
