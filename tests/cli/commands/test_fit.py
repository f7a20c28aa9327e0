"""`fit`, with the real arithmetic and a tiny model; `show` of what is not here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from llmrun.store import hardware
from tests.api.scripted import MODEL
from tests.cli.conftest import Shell
from tests.store.server import serving
from tests.support.tiny import Shape, write_llama


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "_SAMPLE", 8 << 20)


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[str]:
    data = write_llama(tmp_path / "m.gguf", Shape(embd=256, layers=2)).read_bytes()
    with serving() as host:
        yield host.put("/m.gguf", data)


def test_fit_tells_weights_speed_and_every_context(stocked: Shell) -> None:
    done = stocked.run("fit", MODEL)
    assert done.code == 0
    assert "largest context  512 tokens, all that the model has" in done.out
    rows = [line.split() for line in done.out.splitlines() if line.startswith("512 ")]
    assert [row[1] for row in rows] == ["f16", "q8_0", "q4_0"]
    assert all(row[-1] == "yes" for row in rows)


def test_fit_json_adds_up(stocked: Shell) -> None:
    done = stocked.run("fit", MODEL, "--ctx", "300", "--kv-type", "q8_0", "--json")
    record = json.loads(done.out)
    (one,) = record["plans"]
    assert one["peak"] == sum(one[part] for part in ("mapped", "repacked", "kv", "compute", "runtime"))
    assert one["kv"] == 512 * 2 * (34 + 34)
    assert record["largest_context"] == {"q8_0": 512}
    assert record["tokens_per_second"] > 0
    assert not record["remote"]


def test_fit_of_a_remote_model_downloads_nothing(shell: Shell, home: Path, remote: str) -> None:
    record = json.loads(shell.run("fit", remote, "--json").out)
    assert record["remote"]
    assert record["weights"] > 1 << 20
    assert not home.exists()


def test_fit_unknown_kv_type_names_those_there_are(stocked: Shell) -> None:
    done = stocked.run("fit", MODEL, "--kv-type", "q9")
    assert (done.code, "q8_0" in done.err) == (2, True)


def test_show_of_a_remote_model_reads_its_header(shell: Shell, home: Path, remote: str) -> None:
    shown = json.loads(shell.run("show", remote, "--json").out)
    assert (shown["remote"], shown["architecture"]) == (True, "llama")
    assert f"no; llmrun pull {remote}" in shell.run("show", remote).out
    assert "<|im_start|>" in shell.run("show", remote, "--template").out
    assert "blk.1.attn_k.weight" in shell.run("show", remote, "--tensors").out
    assert not home.exists()
