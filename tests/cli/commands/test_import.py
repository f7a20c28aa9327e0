"""`import`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.cli.conftest import Shell


def test_import_lists_then_takes_in(shell: Shell, home: Path, tiny_gguf: Path, tmp_path: Path) -> None:
    person = tmp_path / "person"
    folder = person / ".lmstudio" / "models" / "Me" / "Tiny-GGUF"
    folder.mkdir(parents=True)
    shutil.copy(tiny_gguf, folder / "tiny-Q4_0.gguf")
    (folder / "broken-Q4_0.gguf").write_bytes(b"GGML")
    for name in ("OLLAMA_MODELS", "HF_HOME", "HF_HUB_CACHE", "LLAMA_CACHE", "XDG_CACHE_HOME"):
        shell.env[name] = ""
    shell.env["HOME"] = str(person)
    done = shell.run("import", "--dry-run")
    assert done.code == 0
    assert "tiny:Q4_0  " in done.out
    assert "not a usable GGUF" in done.err
    assert not home.exists()
    records = json.loads(shell.run("import", "--json").out)
    assert {one["name"]: one["state"] for one in records} == {"tiny:Q4_0": "new", "broken:Q4_0": "refused"}
    assert json.loads(shell.run("show", "tiny:Q4_0", "--json").out)["in_place"]
    assert "here already" in shell.run("import").out


def test_import_where_nothing_is_says_where_it_looked(shell: Shell, tmp_path: Path) -> None:
    shell.env |= {"HOME": str(tmp_path / "nobody"), "HF_HOME": "", "HF_HUB_CACHE": "", "LLAMA_CACHE": ""}
    done = shell.run("import")
    assert (done.code, done.out) == (0, "")
    assert "Ollama" in done.err
