"""A model in this process; tests/real/test_python.py has the rest, with the real one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import llmrun
from llmrun.errors import LlmrunError
from tests.support.kinds import CTX, EMBEDDERS
from tests.support.tiny import write_llama


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLMRUN_HOME", str(tmp_path / "home"))


def test_embedding_model_embeds_and_does_not_write(tmp_path: Path) -> None:
    with llmrun.load(str(EMBEDDERS["encoder, mean"](tmp_path / "bert.gguf"))) as model:
        assert model.ctx == CTX
        first, second = model.embed(["hello", "world"])
        assert np.linalg.norm(first) == pytest.approx(1)
        assert model.embed("hello") == [pytest.approx(first, abs=1e-6)]
        assert first != second
        assert len(model.embed("hello", dimensions=8)[0]) == 8
        with pytest.raises(LlmrunError, match="writes no text"):
            model.complete("hello")
        with pytest.raises(LlmrunError, match="there is no text"):
            model.embed([])
    with pytest.raises(LlmrunError, match="closed"):
        model.embed("hello")


def test_chat_model_embeds_too(tmp_path: Path) -> None:
    with llmrun.load(str(write_llama(tmp_path / "tiny.gguf")), ctx=256) as model:
        assert len(model.embed("hello")[0]) == 64
        assert model.complete("hello", max_tokens=3)
