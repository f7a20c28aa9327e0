"""Tokenising by llama.cpp itself: what is asked of it, and what long texts may not do to the process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llmrun.llama.windows import WIDTH
from tests.chat.vocabs import native_vocab, write_bpe_vocab, write_spm_vocab

PROSE = "then the others, said he.\nThey went\tthere again; " * 2000


@pytest.fixture(scope="module", params=["spm", "bpe"])
def vocab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    path = tmp_path_factory.mktemp("vocab") / "x.gguf"
    made = write_spm_vocab(path) if request.param == "spm" else write_bpe_vocab(path, "llama-bpe")
    with native_vocab(made) as opened:
        yield opened


def test_tokenize_long_text_in_pieces_as_in_one(vocab: Any) -> None:
    assert len(PROSE) > 4 * WIDTH
    assert vocab.tokenize(PROSE, special=False) == vocab._tokenize(PROSE, special=False, edges=False)


def test_tokenize_long_text_has_its_edges_once(vocab: Any) -> None:
    whole = vocab._tokenize(PROSE, special=True, edges=True)
    assert vocab.tokenize(PROSE, special=True, edges=True) == whole


@pytest.mark.parametrize(
    "text", ["the " * 9000, "x" * 40_000, " " * 40_000, "</s>" * 9000 + "<|end|>" * 9000]
)
def test_tokenize_stops_soon_behind_the_most(vocab: Any, text: str) -> None:
    exact = vocab.tokenize(text, special=True)
    for most in (10, len(exact) - 1, len(exact), len(exact) + 1):
        ids = vocab.tokenize(text, special=True, most=most)
        if len(exact) <= most:
            assert ids == exact
        else:
            assert most < len(ids) <= len(exact)


def test_tokenize_far_too_long_text_looks_at_its_beginning_alone(vocab: Any) -> None:
    assert len(vocab.tokenize("x" * 2_000_000, special=False, most=100)) <= WIDTH


@pytest.mark.parametrize("text", ["a", " ", "."])
def test_tokenize_long_run_does_not_end_the_process(tmp_path: Path, text: str) -> None:
    path = write_bpe_vocab(tmp_path / "x.gguf", "deepseek-llm")
    program = (
        "from tests.chat.vocabs import native_vocab; from pathlib import Path\n"
        f"with native_vocab(Path({str(path)!r})) as vocab:\n"
        f"    print(len(vocab.tokenize({text!r} * 300_000, special=False)), end='')"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (0, "300000")
