"""`list`, `show`, `pull`, `cp`, `rm`: the real store, a tiny model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.api.scripted import MODEL
from tests.cli.conftest import Shell
from tests.support.tiny import CHATML


def test_list_of_an_empty_home_says_how_to_begin(shell: Shell, home: Path) -> None:
    done = shell.run("list")
    assert done.code == 0
    assert done.out.startswith("NAME")
    assert "llmrun pull smollm2:135m" in done.err
    assert not home.exists()


def test_list_shows_a_row_and_json_the_numbers(stocked: Shell, tiny_gguf: Path) -> None:
    row = stocked.run("list").out.splitlines()[1]
    assert row.startswith(MODEL)
    assert "512" in row
    (record,) = json.loads(stocked.run("list", "--json").out)
    assert (record["name"], record["context"], record["size"]) == (MODEL, 512, tiny_gguf.stat().st_size)
    assert record["kind"] == "chat"


def test_show_names_the_facts(stocked: Shell, tiny_gguf: Path) -> None:
    shown = dict(line.split(None, 1) for line in stocked.run("show", MODEL).out.splitlines())
    assert shown["name"] == MODEL
    assert shown["architecture"] == "llama"
    assert shown["context"] == "512 tokens"
    assert shown["file"] == str(tiny_gguf)
    assert shown["license"] == "not stated"


def test_show_json_holds_the_template_too(stocked: Shell) -> None:
    shown = json.loads(stocked.run("show", MODEL, "--json").out)
    assert (shown["name"], shown["template"]) == (MODEL, CHATML)


def test_show_one_part(stocked: Shell, tiny_gguf: Path) -> None:
    assert stocked.run("show", MODEL, "--template").out == f"{CHATML}\n"
    assert f"FROM {tiny_gguf}\n" in stocked.run("show", MODEL, "--modelfile").out
    tensors = stocked.run("show", MODEL, "--tensors").out.splitlines()
    assert tensors[0].split() == ["NAME", "TYPE", "SHAPE", "SIZE"]
    assert any(line.startswith("token_embd.weight ") for line in tensors)
    first = json.loads(stocked.run("show", MODEL, "--tensors", "--json").out)[0]
    assert set(first) == {"name", "type", "shape", "size"}
    assert json.loads(stocked.run("show", MODEL, "--template", "--json").out) == {"template": CHATML}


def test_show_modelfile_describes_the_model_again(stocked: Shell) -> None:
    from llmrun.store import parse_modelfile

    parse_modelfile(stocked.run("show", MODEL, "--modelfile").out)


def test_show_a_path(stocked: Shell, tiny_gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tiny_gguf.parent)
    assert str(tiny_gguf) in stocked.run("show", f"./{tiny_gguf.name}").out


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["show", "tiny:2m"], 3, "tiny:1m"),
        (["show", MODEL, "--license"], 1, "does not state its licence"),
        (["show", MODEL, "--template", "--tensors"], 2, "one part"),
        (["cp", MODEL, "Wrong Name"], 2, "Wrong Name"),
        (["cp", MODEL, MODEL], 1, "taken"),
        (["cp", "nobody", "x"], 3, "nobody"),
        (["rm", "nobody"], 3, "nobody"),
        (["rm"], 2, "missing argument 'MODEL'"),
        (["pull", "nobody-knows-this"], 3, "nobody-knows-this"),
        (["pull", "ftp://x/y.gguf"], 2, "ftp://"),
    ],
)
def test_refusals_are_one_line(stocked: Shell, args: list[str], code: int, says: str) -> None:
    done = stocked.run(*args)
    assert (done.code, done.out) == (code, "")
    assert says in done.err
    assert done.err.count("\n") == 1


def test_cp_and_rm_of_a_file_in_place_leave_the_file(stocked: Shell, tiny_gguf: Path) -> None:
    assert stocked.run("cp", MODEL, "other").code == 0
    assert stocked.run("--quiet", "list").out == f"other\n{MODEL}\n"
    done = stocked.run("rm", "other", MODEL)
    assert (done.code, done.out) == (0, "")
    assert "its file stays" in done.err
    assert stocked.run("--quiet", "list").out == ""
    assert tiny_gguf.exists()


def test_rm_of_several_names_goes_on_past_one_that_is_not_there(stocked: Shell) -> None:
    done = stocked.run("rm", "nobody", "noone", MODEL)
    assert done.code == 3
    assert all(name in done.err for name in ("'nobody'", "'noone'", f"{MODEL} is removed"))
    assert stocked.run("--quiet", "list").out == ""


def test_pull_of_a_file_on_disk_registers_it_in_place(shell: Shell, tiny_gguf: Path) -> None:
    done = shell.run("pull", str(tiny_gguf))
    assert (done.code, done.out) == (0, "")
    (record,) = json.loads(shell.run("list", "--json").out)
    assert record["in_place"]
    assert record["path"] == str(tiny_gguf)
    assert record["name"] in done.err


def test_list_shows_a_model_whose_file_is_gone(shell: Shell, tiny_gguf: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.gguf"
    copy.write_bytes(tiny_gguf.read_bytes())
    shell.run("cp", str(copy), "gone")
    copy.unlink()
    assert "file missing" in shell.run("list").out
    done = shell.run("run", "gone", "hi")
    assert done.code == 3
    assert f"put the file back ({copy}), or llmrun rm gone" in done.err
    assert "put the file back" in shell.run("verify").err
