from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from llmrun.api.openai.models import model_card
from llmrun.store import StoredModel
from llmrun.types import Options
from tests.api.scripted import ScriptedService
from tests.api.test_control import running


def stored(name: str, missing: bool = False) -> StoredModel:
    return StoredModel(
        name=name,
        path=Path("/models/x.gguf"),
        files=(Path("/models/x.gguf"),),
        size=4_000,
        sha256=None,
        source="hf.co/Org/Tiny-GGUF:Q4_0",
        modified=datetime(2026, 1, 2, tzinfo=timezone.utc),
        architecture="llama",
        quant="Q4_0",
        parameters=1_000_000,
        ctx_train=8192,
        options=Options(),
        system=None,
        template=None,
        license="mit",
        kind="chat",
        in_place=False,
        missing=missing,
    )


def test_model_card_loaded_golden() -> None:
    assert model_card(stored("tiny:1m"), [running()]) == {
        "id": "tiny:1m",
        "object": "model",
        "created": 1767312000,
        "owned_by": "llmrun",
        "meta": {
            "loaded": True,
            "n_ctx": 2048,
            "n_ctx_train": 8192,
            "n_params": 1_000_000,
            "size": 4_000,
            "architecture": "llama",
            "quant": "Q4_0",
            "kind": "chat",
            "license": "mit",
            "source": "hf.co/Org/Tiny-GGUF:Q4_0",
        },
    }


@pytest.mark.parametrize("loaded", [[], [running(info=None, stats=None)]])
def test_model_card_not_loaded_yet_has_no_window(loaded: list[object]) -> None:
    meta = model_card(stored("tiny:1m"), loaded)["meta"]
    assert isinstance(meta, dict)
    assert (meta["loaded"], meta["n_ctx"], meta["n_ctx_train"]) == (False, None, 8192)


def test_list_shows_loaded_and_trained_window(http: TestClient, service: ScriptedService) -> None:
    service.stored = [stored("gone:1b", missing=True), stored("org/other:1b"), stored("tiny:1m")]
    service.running = [running()]
    listed = http.get("/v1/models").json()
    assert listed["object"] == "list"
    assert [(m["id"], m["meta"]["n_ctx"], m["meta"]["n_ctx_train"]) for m in listed["data"]] == [
        ("org/other:1b", None, 8192),
        ("tiny:1m", 2048, 8192),
    ]


@pytest.mark.parametrize("path", ["org/other:1b", "org%2Fother:1b", "org%2Fother%3A1b"])
def test_retrieve_name_with_slash_and_colon(http: TestClient, service: ScriptedService, path: str) -> None:
    service.stored = [stored("org/other:1b")]
    assert http.get(f"/v1/models/{path}").json()["id"] == "org/other:1b"


def test_retrieve_unknown_is_404_with_the_pull_command(http: TestClient, service: ScriptedService) -> None:
    service.stored = [stored("tiny:1m")]
    response = http.get("/v1/models/tiny:2m")
    assert response.status_code == 404
    error = response.json()["error"]
    assert error["code"] == "model_not_found"
    assert "llmrun pull tiny:2m" in error["message"]
