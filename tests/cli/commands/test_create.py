"""`create`, and `show --modelfile`, which undo each other."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.api.scripted import MODEL
from tests.cli.conftest import Shell

TEXT = f'''# a variant
FROM {MODEL}
PARAMETER temperature 0.25
PARAMETER stop "User: "
SYSTEM """You are "terse".
No more."""
MESSAGE user Hi
MESSAGE assistant Hello
'''


def test_create_makes_a_model_that_show_describes(stocked: Shell, tmp_path: Path) -> None:
    file = tmp_path / "my Modelfile"
    file.write_text(TEXT)
    assert stocked.run("create", "variant", "-f", str(file)).code == 0
    shown = json.loads(stocked.run("show", "variant", "--json").out)
    assert shown["system"] == 'You are "terse".\nNo more.'
    assert (shown["options"]["temperature"], shown["options"]["stop"]) == (0.25, ["User: "])
    assert [message["content"] for message in shown["messages"]] == ["Hi", "Hello"]
    assert "message (user)" in stocked.run("show", "variant").out


def test_create_from_what_show_wrote_is_the_same_model(stocked: Shell) -> None:
    stocked.run("create", "one", "-f", "-", stdin=TEXT)
    assert (
        stocked.run("create", "two", "-f", "-", stdin=stocked.run("show", "one", "--modelfile").out).code == 0
    )
    one, two = (json.loads(stocked.run("show", name, "--json").out) for name in ("one", "two"))
    for differs in ("name", "modified"):
        one.pop(differs), two.pop(differs)
    assert one == two


def test_create_relative_paths_start_at_the_modelfile(shell: Shell, tiny_gguf: Path, tmp_path: Path) -> None:
    shutil.copy(tiny_gguf, tmp_path / "m.gguf")
    (tmp_path / "Modelfile").write_text("FROM ./m.gguf\nREQUIRES 0.14.0\n")
    done = shell.run("create", "mine", "-f", str(tmp_path / "Modelfile"))
    assert done.code == 0
    assert "0.14.0" in done.err
    assert json.loads(shell.run("show", "mine", "--json").out)["path"] == str(tmp_path / "m.gguf")


def test_create_faults_are_one_line_with_the_place(stocked: Shell, tmp_path: Path) -> None:
    done = stocked.run("create", "x", "-f", "-", stdin=f"FROM {MODEL}\nPARAMETER temperature hot\n")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: stdin, line 2, column 11: temperature is 'hot'")
    done = stocked.run("create", "x", "-f", str(tmp_path / "none"))
    assert (done.code, done.err.count("\n")) == (1, 1)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    assert stocked.run("create", "x", "-f", str(tmp_path / "binary")).code == 2
    done = stocked.run("create", "x", "-f", "-", stdin="FROM \udcff\n")
    assert (done.code, done.err) == (2, "error: stdin is no text. a Modelfile is UTF-8 text\n")
    done = stocked.run("create", "x", "-f", "-", stdin=f"FROM {MODEL}\nADAPTER ./lora.gguf\n")
    assert (done.code, "lora.gguf does not exist" in done.err) == (3, True)
    assert "x" not in stocked.run("list").out.split()
