from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmrun.cli.commands.config import shown, with_setting
from llmrun.config import SETTINGS, Settings, parse_setting
from tests.cli.conftest import Shell


def test_set_then_get_and_the_environment_wins(shell: Shell, home: Path) -> None:
    assert shell.run("config", "set", "keep_alive", "1h").code == 0
    assert shell.run("config", "get", "keep_alive").out == "3600\n"
    shell.env["LLMRUN_KEEP_ALIVE"] = "-1"
    assert shell.run("config", "get", "keep_alive").out == "-1\n"
    assert shell.run("config", "path").out == f"{home}/config/config.toml\n"


def test_get_all_names_every_setting(shell: Shell) -> None:
    assert [line.split()[0] for line in shell.run("config", "get").out.splitlines()] == list(SETTINGS)
    assert set(json.loads(shell.run("config", "get", "--json").out)) == set(SETTINGS)


def test_get_does_not_show_the_key(shell: Shell) -> None:
    shell.env["LLMRUN_API_KEY"] = "hunter2"
    assert "hunter2" not in shell.run("config", "get").out
    assert shell.run("config", "get", "api_key").out == "(set)\n"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["set", "ctxt", "3"], "did you mean 'ctx'?"),
        (["get", "ctxt"], "did you mean 'ctx'?"),
        (["set", "ctx", "lots"], "ctx is 'lots'"),
        (["set", "ctx"], "missing argument 'VALUE'"),
    ],
)
def test_wrong_use_is_refused_and_writes_nothing(
    shell: Shell, home: Path, args: list[str], says: str
) -> None:
    done = shell.run("config", *args)
    assert done.code == 2
    assert says in done.err
    assert not home.exists()


def test_with_setting_keeps_every_other_line() -> None:
    text = '# mine\nctx = 1024 # small\n\nhost="a:1"'
    text = with_setting(text, "ctx", "auto")
    text = with_setting(text, "parallel", "2")
    assert text == '# mine\nctx = "auto"\n\nhost="a:1"\nparallel = "2"\n'


@pytest.mark.parametrize("before", ['origins = [\n  "https://a.example",\n]\n', "ctx = = 3\n"])
def test_set_in_a_file_it_cannot_change_line_by_line_changes_nothing(
    shell: Shell, home: Path, before: str
) -> None:
    file = home / "config" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(before)
    done = shell.run("config", "set", "origins", "https://b.example")
    assert done.code == 2
    assert "by hand" in done.err
    assert file.read_text() == before


@pytest.mark.parametrize("name", list(SETTINGS))
def test_shown_value_can_be_read_back(name: str) -> None:
    value = getattr(Settings(), name)
    text = shown(name, value)
    assert not text or parse_setting(name, text, name) == value
