from __future__ import annotations

from pathlib import Path

import pytest

from llmrun.runner.frames import Load
from llmrun.runner.step_times import NOTHING, StepTimes, file_for, read, write

TIMES = StepTimes(3, {1: 0.01, 4: 0.025}, (0.004, 0.002, 1e-6))


def test_times_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "steps" / "x.json"
    write(path, TIMES)
    assert read(path) == TIMES
    assert [each.name for each in path.parent.iterdir()] == ["x.json"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\x00",
        b'{"threads": 0}',
        b'{"threads": "two"}',
        b'{"seconds": {"1": -1.0}}',
        b'{"prefill": [0, 0, 0]}',
    ],
)
def test_damaged_file_is_as_good_as_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    assert read(path) == NOTHING


def test_no_file_is_nothing(tmp_path: Path) -> None:
    assert read(tmp_path / "none") == read(None) == NOTHING


def test_folder_that_cannot_be_made_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    write(tmp_path / "file" / "x.json", TIMES)
    assert (tmp_path / "file").read_text() == "in the way"


def test_file_is_one_for_each_model_and_setting(tmp_path: Path) -> None:
    plain = {"name": "a", "path": "a", "content": "c", "kv_folder": str(tmp_path / "kv")}
    changed = (
        *({}, {"content": "d"}, {"kv_type": "q8_0"}, {"gpu_layers": 3}, {"threads": 1}),
        *({"kv_layout": "separate"}, {"flash_attention": "off"}),
    )
    files = [file_for(Load(**{**plain, **change})) for change in changed]
    assert len(set(files)) == len(changed)
    assert {path.parent for path in files if path} == {tmp_path / "steps"}
    assert file_for(Load(**{**plain, "name": "b"})) == files[0]


def test_nothing_is_kept_without_a_folder_or_a_name_for_the_models_bytes(tmp_path: Path) -> None:
    assert file_for(Load(name="a", path="a", content="c")) is None
    assert file_for(Load(name="a", path="a", kv_folder=str(tmp_path))) is None
