"""`llmrun bench` over a real daemon of its own and a tiny model of random weights."""

from __future__ import annotations

import importlib.util
import json
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from llmrun.config import Paths
from llmrun.store import Store
from tests.api.scripted import MODEL
from tests.cli.conftest import Shell
from tests.support.tiny import Shape, write_llama

SMALL = ("--lengths", "16,64", "--concurrency", "1,2", "--tokens", "4", "--times", "1")


def test_bench_measures_every_length_and_concurrency(stocked: Shell, tmp_path: Path) -> None:
    picture = tmp_path / "speed.png"
    done = stocked.run("bench", MODEL, *SMALL, "--json", "--plot", str(picture))
    assert done.code == 0, done.err
    report = json.loads(done.out)
    (one,) = report["models"]
    assert [row["prompt"] for row in one["lengths"]] == [16, 64]
    assert [row["concurrency"] for row in one["concurrency"]] == [1, 2]
    for row in one["lengths"]:
        assert row["prefill_tps"] > 0
        assert row["decode_tps"] > 0
        assert row["roofline"] > 0
        assert row["ttft_ms"]["p50"] > 0
    assert report["quality"] == []
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_bench_compares_models_with_the_largest(stocked: Shell, paths: Paths, tmp_path: Path) -> None:
    Store(paths).copy(str(write_llama(tmp_path / "other.gguf", Shape(seed=7))), "other:1m")
    done = stocked.run("bench", MODEL, *SMALL, "--quants", "other:1m", "--json")
    assert done.code == 0, done.err
    report = json.loads(done.out)
    by_name = {row["name"]: row for row in report["quality"]}
    assert set(by_name) == {MODEL, "other:1m"}
    best, worse = by_name[report["reference"]], by_name[({*by_name} - {report["reference"]}).pop()]
    assert (best["kl_mean"], best["same_top"]) == (0.0, 1.0)
    assert worse["kl_mean"] > 0
    assert worse["perplexity"] > 1


def test_bench_shows_tables(stocked: Shell) -> None:
    done = stocked.run("bench", MODEL, *SMALL)
    assert done.code == 0, done.err
    assert "PREFILL/S" in done.out
    assert "AT ONCE" in done.out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--lengths", "a"), 2, "--lengths is 'a', which is no list of counts"),
        (("--concurrency", "0,1"), 2, "--concurrency is '0,1'"),
        (("--lengths", "4000"), 2, "and 4000 with an answer of 64 are more"),
        (("--quants", "Q8_0"), 3, "make it: llmrun quantize tiny:1m Q8_0"),
    ],
)
def test_bench_wrong_words(stocked: Shell, words: tuple[str, ...], code: int, said: str) -> None:
    done = stocked.run("bench", MODEL, *words)
    assert (done.code, done.out) == (code, "")
    assert said in done.err


def test_bench_without_matplotlib_says_how_to_get_it(stocked: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec

    def without(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "matplotlib" else found(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    done = stocked.run("bench", MODEL, "--plot", "x.png")
    assert done.code == 2
    assert "pip install 'llmrun[plot]'" in done.err
