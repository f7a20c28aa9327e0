from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from llmrun.api.llamacpp.embedding import normalized
from llmrun.types import EmbedRequest
from tests.api.openai.test_models import stored
from tests.api.scripted import MODEL, ScriptedService
from tests.api.vectors import vector, vectors

PATHS = ("/embedding", "/embeddings")


@pytest.fixture
def service() -> ScriptedService:
    """It has a chat model, and one that only embeds."""
    embedder = replace(stored("minilm:22m"), kind="embedding")
    return ScriptedService(stored=[stored(MODEL), embedder], lookup=vectors)


@pytest.mark.parametrize("path", PATHS)
def test_embed_golden(http: TestClient, path: str) -> None:
    reply = http.post(path, json={"content": ["a", "b"]})
    assert reply.json() == [
        {"index": 0, "embedding": [vector(0).numbers()]},
        {"index": 1, "embedding": [vector(1).numbers()]},
    ]


@pytest.mark.parametrize(
    ("body", "inputs"),
    [
        ({"content": "a"}, ("a",)),
        ({"input": "a", "encoding_format": "float"}, ("a",)),
        ({"content": [1, 2]}, ((1, 2),)),
        ({"content": ["a", [3]]}, ("a", (3,))),
        ({"content": {"prompt_string": "a"}}, ("a",)),
    ],
)
def test_embed_takes_text_and_token_ids_of_the_model_that_embeds(
    http: TestClient, service: ScriptedService, body: dict[str, Any], inputs: object
) -> None:
    assert http.post("/embedding", json=body).status_code == 200
    (asked,) = service.looked_up
    assert isinstance(asked, EmbedRequest)
    assert (asked.inputs, asked.model, asked.normalize) == (inputs, "minilm:22m", True)


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, "content"),
        ({"content": "a", "input": "b"}, "content"),
        ({"content": ""}, "content.0"),
        ({"input": ["a", ""]}, "input.1"),
        ({"content": ["a", 5]}, "content"),
        ({"content": "a", "embd_normalize": -2}, "embd_normalize"),
        ({"content": "a", "encoding_format": "base64"}, "encoding_format"),
    ],
)
def test_embed_wrong_field_is_named_in_llama_servers_shape(
    http: TestClient, service: ScriptedService, body: dict[str, Any], named: str
) -> None:
    reply = http.post("/embedding", json=body)
    assert (reply.status_code, service.looked_up) == (400, [])
    error = reply.json()["error"]
    assert (error["code"], error["type"]) == (400, "invalid_request_error")
    assert error["message"].startswith(named)


@pytest.mark.parametrize(
    ("norm", "wanted"),
    [(-1, [3.0, -4.0]), (0, [24570.0, -32760.0]), (1, [3 / 7, -4 / 7]), (3, [3 / 91 ** (1 / 3)] * 2)],
)
def test_embed_other_norms_are_made_here(
    http: TestClient, service: ScriptedService, norm: int, wanted: list[float]
) -> None:
    assert normalized([3.0, -4.0], norm)[: 1 if norm == 3 else 2] == pytest.approx(
        wanted[: 1 if norm == 3 else 2]
    )
    assert http.post("/embedding", json={"content": "a", "embd_normalize": norm}).status_code == 200
    (asked,) = service.looked_up
    assert isinstance(asked, EmbedRequest)
    assert not asked.normalize


@given(st.lists(st.floats(-(2.0**90), 2.0**90, width=32), min_size=1, max_size=9), st.integers(1, 400))
def test_normalized_vector_has_that_norm_whatever_it_holds(numbers: list[float], norm: int) -> None:
    shown = normalized(numbers, 0 if norm == 2 else norm)
    assert all(map(math.isfinite, shown))
    if norm != 2 and any(numbers):
        assert sum(abs(x) ** norm for x in shown) == pytest.approx(1.0, rel=1e-3)
