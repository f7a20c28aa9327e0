"""A real embedding model against its makers' own vectors, through the daemon's routes and official clients.

The model and the vectors lie in a folder beside the repository, or in `LLMRUN_TEST_SHARED`.
"""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import numpy as np
import numpy.typing as npt
import ollama
import openai
import pytest

from llmrun.config import DEFAULT_MODEL
from tests.real.daemons import Daemon, linked_home

SHARED = Path(os.environ.get("LLMRUN_TEST_SHARED") or Path(__file__).parents[3] / "shared")
MODEL = SHARED / "models" / "all-minilm-l6-v2-q8_0.gguf"
REFERENCE = SHARED / "data" / "minilm-reference.json"

pytestmark = pytest.mark.real
with_model = pytest.mark.skipif(
    not (MODEL.is_file() and REFERENCE.is_file()), reason=f"{MODEL} or {REFERENCE} is not there"
)
WHO = ("A man", "The cat", "Rain", "My old car", "Everybody")
DOES = ("sleeps", "is eating a piece of bread", "goes up the hill at dawn", "was never seen again")
TEXTS = [f"{subject} {verb}." for subject in WHO for verb in DOES]

Vectors = npt.NDArray[np.float64]


@pytest.fixture(scope="module")
def client(daemon: Daemon) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{daemon.url}/v1", api_key="none", max_retries=0, timeout=100)


def embed(client: openai.OpenAI, model: str, texts: list[str]) -> Vectors:
    reply = client.embeddings.create(model=model, input=texts)
    assert [item.index for item in reply.data] == list(range(len(texts)))
    return np.array([item.embedding for item in reply.data])


def cosines(some: Vectors, others: Vectors) -> Vectors:
    cosine: Vectors = (some * others).sum(1) / np.linalg.norm(some, axis=1) / np.linalg.norm(others, axis=1)
    return cosine


@with_model
def test_vectors_are_those_of_the_models_makers_in_every_dialect(
    daemon: Daemon, client: openai.OpenAI
) -> None:
    reference = json.loads(REFERENCE.read_text("utf-8"))
    sentences, expected = reference["sentences"], np.array(reference["embeddings"])
    assert cosines(embed(client, str(MODEL), sentences), expected).min() >= 0.999
    with ollama.Client(host=daemon.url, timeout=100) as other:
        said = np.array(other.embed(str(MODEL), sentences).embeddings)
        assert cosines(said, expected).min() >= 0.999
        one = np.array([list(other.embeddings(str(MODEL), sentences[0]).embedding)])
    assert cosines(one, expected[:1]).min() >= 0.999
    assert np.linalg.norm(said, axis=1) == pytest.approx(1, abs=1e-5)


@with_model
def test_command_line_prints_the_same_vectors(daemon: Daemon, client: openai.OpenAI) -> None:
    done = daemon.run("embed", str(MODEL), stdin="\n".join(TEXTS).encode())
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["index"] for line in lines] == list(range(len(TEXTS)))
    said = np.array([line["embedding"] for line in lines])
    assert cosines(said, embed(client, str(MODEL), TEXTS)).min() >= 0.99999


@pytest.mark.parametrize("model", [pytest.param(str(MODEL), marks=with_model, id="encoder"), DEFAULT_MODEL])
def test_texts_one_by_one_and_as_a_list_have_the_same_vectors(client: openai.OpenAI, model: str) -> None:
    together = embed(client, model, TEXTS)
    alone = np.concatenate([embed(client, model, [text]) for text in TEXTS])
    assert cosines(together, alone).min() >= 0.9999
    between = together @ together.T
    assert np.abs(between - np.eye(len(TEXTS))).max() < 1.0  # no two of them alike


def cut_or_refused(daemon: Daemon, model: str, tokens: int, context: int, size: int) -> None:
    """Ask for the vector of a text of so many tokens, in every way."""
    ask = {"model": model, "input": ["short", "word " * (tokens // 100 * 100)]}
    refused = daemon.http.post("/v1/embeddings", json=ask)
    assert refused.status_code == 400
    error = refused.json()["error"]
    assert error["details"] == {"prompt_tokens": tokens, "context": context}
    assert str(tokens) in error["message"]
    assert str(context) in error["message"]
    cut = daemon.http.post("/v1/embeddings", json={**ask, "truncate": True}).json()
    assert cut["truncated"] == [{"index": 1, "tokens_cut": tokens - context}]
    assert len(cut["data"][1]["embedding"]) == size
    assert daemon.http.post("/api/embed", json={**ask, "truncate": False}).status_code == 400
    assert daemon.http.post("/api/embed", json=ask).json()["truncated"] == cut["truncated"]


@with_model
def test_text_longer_than_the_context_is_cut_or_refused_by_an_encoder(daemon: Daemon) -> None:
    cut_or_refused(daemon, str(MODEL), 1002, 512, 384)


def test_text_longer_than_the_context_is_cut_or_refused(home: Path, tmp_path: Path) -> None:
    small = Daemon(linked_home(home, tmp_path / "home"), LLMRUN_CTX="256")
    try:
        cut_or_refused(small, DEFAULT_MODEL, 401, 256, 576)
    finally:
        small.close()


def test_base64_and_floats_are_the_same_numbers(daemon: Daemon) -> None:
    ask = {"model": DEFAULT_MODEL, "input": TEXTS[:2]}
    floats = daemon.http.post("/v1/embeddings", json=ask).json()["data"]
    coded = daemon.http.post("/v1/embeddings", json={**ask, "encoding_format": "base64"}).json()["data"]
    for plain, item in zip(floats, coded, strict=True):
        raw = np.frombuffer(base64.b64decode(item["embedding"]), "<f4")
        assert raw.tolist() == plain["embedding"]


@with_model
def test_embedding_model_that_is_asked_to_write_says_what_it_is(daemon: Daemon) -> None:
    turn = {"role": "user", "content": "Hi"}
    for path, ask in {
        "/v1/chat/completions": {"messages": [turn]},
        "/v1/completions": {"prompt": "Hi"},
        "/api/chat": {"messages": [turn]},
    }.items():
        reply = daemon.http.post(path, json={"model": str(MODEL), **ask})
        assert reply.status_code == 400, path
        assert "embedding" in reply.text


def test_chat_model_asked_to_rank_says_what_to_use(daemon: Daemon) -> None:
    reply = daemon.http.post("/v1/rerank", json={"model": DEFAULT_MODEL, "query": "a", "documents": ["b"]})
    assert reply.status_code == 400
    assert "reranker" in reply.json()["error"]["message"]
