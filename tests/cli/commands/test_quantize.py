"""`quantize`, with the real llama.cpp in its child process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.api.scripted import MODEL
from tests.cli.conftest import Shell


@pytest.mark.real
def test_quantize_names_the_new_model_and_list_shows_it(stocked: Shell) -> None:
    done = stocked.run("quantize", MODEL, "q4_0")
    assert (done.code, done.out) == (0, "")
    assert "tiny:1m-Q4_0" in done.err
    models = json.loads(stocked.run("list", "--json").out)
    assert {model["name"]: model["quant"] for model in models}["tiny:1m-Q4_0"] == "Q4_0"


def test_quantize_faults_are_one_line(stocked: Shell, tmp_path: Path) -> None:
    for args, code, says in (
        ((MODEL, "Q9"), 2, "no type 'Q9'"),
        ((MODEL, "IQ1_S"), 2, "importance matrix"),
        (("nobody", "Q4_0"), 3, "nobody"),
        ((MODEL, "Q4_0", "-o", "Bad Name"), 2, "Bad Name"),
        ((MODEL, "Q4_0", "--imatrix", str(tmp_path / "none")), 2, "none"),
    ):
        done = stocked.run("quantize", *args)
        assert (done.code, done.out, done.err.count("\n")) == (code, "", 1), done.err
        assert says in done.err
