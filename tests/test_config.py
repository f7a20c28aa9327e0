from __future__ import annotations

import math
from pathlib import Path

import pytest

from llmrun.config import Paths, Settings, load_settings, parse_duration
from llmrun.errors import LlmrunError


def _paths(home: Path) -> Paths:
    return Paths.find({"LLMRUN_HOME": str(home)})


def _write(home: Path, text: str) -> Paths:
    paths = _paths(home)
    paths.config.mkdir(parents=True)
    (paths.config / "config.toml").write_text(text, "utf-8")
    return paths


def test_paths_with_a_home_lie_all_under_it(tmp_path: Path) -> None:
    paths = _paths(tmp_path / "ho me 模型")
    for folder in (paths.models, paths.cache, paths.logs, paths.state, paths.config):
        assert folder.parent == tmp_path / "ho me 模型"


def test_paths_without_a_home_are_the_platforms() -> None:
    paths = Paths.find({})
    assert all("llmrun" in str(folder) for folder in (paths.models, paths.cache, paths.config))


def test_settings_with_nothing_set_are_the_defaults(tmp_path: Path) -> None:
    assert load_settings(_paths(tmp_path), {}) == Settings()


def test_settings_flag_beats_environment_beats_file(tmp_path: Path) -> None:
    paths = _write(tmp_path, 'ctx = 1024\nkeep_alive = "1h"\nparallel = 2\norigins = ["https://a.example"]\n')
    settings = load_settings(
        paths, {"LLMRUN_CTX": "2048", "LLMRUN_PARALLEL": "3"}, {"parallel": 4, "ctx": None}
    )
    assert (settings.ctx, settings.parallel, settings.keep_alive) == (2048, 4, 3600.0)
    assert settings.origins == ("https://a.example",)


def test_settings_unknown_key_names_the_nearest(tmp_path: Path) -> None:
    paths = _write(tmp_path, "paralel = 2\n")
    with pytest.raises(LlmrunError, match=r"unknown key 'paralel'.*did you mean 'parallel'"):
        load_settings(paths, {})


def test_settings_file_that_is_no_toml_is_refused_by_path(tmp_path: Path) -> None:
    paths = _write(tmp_path, "ctx = = 1")
    with pytest.raises(LlmrunError, match=r"config\.toml cannot be read"):
        load_settings(paths, {})


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("LLMRUN_CTX", "many"),
        ("LLMRUN_CTX", "0"),
        ("LLMRUN_PARALLEL", "257"),
        ("LLMRUN_KV_TYPE", "q3_k"),
        ("LLMRUN_KEEP_ALIVE", "5 minutes"),
        ("LLMRUN_HOST", "localhost:http"),
        ("LLMRUN_HOST", "localhost:70000"),
        ("LLMRUN_HOST", "user@host"),
        ("LLMRUN_MAX_QUEUE", "-1"),
    ],
)
def test_settings_wrong_value_names_the_variable_and_the_value(
    tmp_path: Path, variable: str, text: str
) -> None:
    with pytest.raises(LlmrunError) as refusal:
        load_settings(_paths(tmp_path), {variable: text})
    assert variable in refusal.value.message
    assert repr(text) in refusal.value.message
    assert refusal.value.kind.exit == 2


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("300", 300.0),
        ("5m", 300.0),
        ("1h30m", 5400.0),
        ("250ms", 0.25),
        ("1.5s", 1.5),
        ("2d", 172800.0),
    ],
)
def test_parse_duration_in_every_form_is_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


def test_parse_duration_negative_is_for_ever() -> None:
    assert math.isinf(parse_duration("-1"))


@pytest.mark.parametrize("text", ["", " ", "m", "5x", "5m5", "nan", "--1"])
def test_parse_duration_of_something_else_raises(text: str) -> None:
    with pytest.raises(ValueError, match=r"could not convert|nan"):
        parse_duration(text)


@pytest.mark.parametrize(("text", "wanted"), [("1", True), ("0", False), ("true", True), ("False", False)])
def test_lenient_is_a_switch(tmp_path: Path, text: str, wanted: bool) -> None:
    settings = load_settings(_write(tmp_path / "empty", ""), {"LLMRUN_LENIENT": text})
    assert settings.lenient is wanted
    assert load_settings(_write(tmp_path / "set", f"lenient = {text.lower()}"), {}).lenient is wanted


def test_lenient_that_is_no_switch_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LlmrunError, match="LLMRUN_LENIENT is 'some', but is written as 1 or 0"):
        load_settings(_write(tmp_path, ""), {"LLMRUN_LENIENT": "some"})
