from __future__ import annotations

import asyncio
import base64
from array import array
from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from typing import Any

import ollama
import openai
import pytest
from starlette.testclient import TestClient

from llmrun.api.app import create_app
from llmrun.config import Settings
from llmrun.errors import CONTEXT_LENGTH, LlmrunError
from llmrun.types import AnyRequest, EmbedRequest, Event, Failed, Options, RankRequest
from tests.api.asgi import Exchange
from tests.api.openai.test_models import stored
from tests.api.scripted import MODEL, ScriptedService
from tests.api.server import serving
from tests.api.vectors import SCORES, vector, vectors

F32 = array("f", [0.1])[0]


@pytest.fixture(autouse=True)
def _embeds(service: ScriptedService) -> None:
    service.stored = [stored(MODEL)]
    service.lookup = vectors


def post(http: TestClient, path: str, expected: int = 200, **fields: Any) -> dict[str, Any]:
    response = http.post(path, json={"model": MODEL, **fields})
    assert response.status_code == expected, response.text
    body: dict[str, Any] = response.json()
    return body


# --- OpenAI


def test_embeddings_have_openais_shape(http: TestClient, service: ScriptedService) -> None:
    reply = post(http, "/v1/embeddings", input=["a", "b"])
    assert reply["object"] == "list"
    assert reply["data"] == [
        {"object": "embedding", "index": number, "embedding": [number, F32, -2.0]} for number in (0, 1)
    ]
    assert reply["usage"] == {"prompt_tokens": 12, "total_tokens": 12}
    assert reply["model"] == MODEL
    assert "truncated" not in reply
    assert reply["timings"]["queue_ms"] == 3.0
    (asked,) = service.looked_up
    assert isinstance(asked, EmbedRequest)
    assert (asked.inputs, asked.truncate, asked.normalize) == (("a", "b"), False, True)


@pytest.mark.parametrize(
    ("given", "inputs"),
    [
        ("a", ("a",)),
        ([1, 2], ((1, 2),)),
        ([[1, 2], [3]], ((1, 2), (3,))),
        (["a", [3]], ("a", (3,))),
    ],
)
def test_embeddings_take_text_and_token_ids(
    http: TestClient, service: ScriptedService, given: object, inputs: object
) -> None:
    post(http, "/v1/embeddings", input=given, dimensions=2, ctx=64, user="me")
    (asked,) = service.looked_up
    assert isinstance(asked, EmbedRequest)
    assert (asked.inputs, asked.dimensions, asked.options) == (inputs, 2, Options(ctx=64))


def test_embeddings_in_base64_are_the_same_numbers(http: TestClient) -> None:
    reply = post(http, "/v1/embeddings", input="a", encoding_format="base64")
    raw = base64.b64decode(reply["data"][0]["embedding"], validate=True)
    assert array("f", raw).tolist() == vector(0).numbers()


def test_embeddings_cut_inputs_are_named(http: TestClient) -> None:
    reply = post(http, "/v1/embeddings", input=["a", "b"], truncate=True)
    assert reply["truncated"] == [{"index": 1, "tokens_cut": 7}]


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("input", "", "input"),
        ("input", [], "input"),
        ("input", ["a", ""], "input.1"),
        ("input", ["a", 1.5], "input.1"),
        ("input", [1, -2], "input.1"),
        ("input", None, "input"),
        ("input", 5, "input"),
        ("encoding_format", "int8", "encoding_format"),
        ("dimensions", 0, "dimensions"),
        ("dimension", 5, "dimension"),
    ],
)
def test_embeddings_wrong_field_is_named(http: TestClient, field: str, value: object, named: str) -> None:
    reply = post(http, "/v1/embeddings", 400, **{"input": "a", field: value})
    assert reply["error"]["param"] == named


def test_embeddings_too_long_input_has_both_numbers(http: TestClient, service: ScriptedService) -> None:
    async def fails(_: AnyRequest) -> AsyncGenerator[Event, None]:
        error = LlmrunError(CONTEXT_LENGTH, "too long", field="input.0", prompt_tokens=600, context=512)
        yield Failed(error.info())

    service.lookup = fails
    reply = post(http, "/v1/embeddings", 400, input="a")
    assert reply["error"]["details"] == {"prompt_tokens": 600, "context": 512}
    assert reply["error"]["param"] == "input.0"


def test_embeddings_client_that_hangs_up_ends_the_request(service: ScriptedService) -> None:
    async def never(_: AnyRequest) -> AsyncGenerator[Event, None]:
        await asyncio.sleep(60)
        yield vector(0)

    async def scenario() -> None:
        service.lookup = never
        app = create_app(service, Settings(), lambda: None)
        exchange = Exchange(app, "/v1/embeddings", {"model": MODEL, "input": "a"})
        await asyncio.wait_for(service.begun.wait(), 5)
        exchange.hang_up()
        await asyncio.wait_for(service.ended.wait(), 5)
        await exchange.task

    asyncio.run(scenario())


# --- rerank

DOCUMENTS = ["a", {"text": "b"}, "c", "d"]


@pytest.mark.parametrize("path", ["/v1/rerank", "/rerank"])
def test_rerank_sorts_by_score(http: TestClient, service: ScriptedService, path: str) -> None:
    reply = post(http, path, query="q", documents=DOCUMENTS)
    assert reply["results"] == [{"index": index, "relevance_score": SCORES[index]} for index in (2, 0, 3, 1)]
    assert reply["usage"] == {"prompt_tokens": 12, "total_tokens": 12}
    (asked,) = service.looked_up
    assert isinstance(asked, RankRequest)
    assert (asked.query, asked.documents) == ("q", ("a", "b", "c", "d"))


def test_rerank_top_documents_come_with_their_text(http: TestClient) -> None:
    reply = post(http, "/v1/rerank", query={"text": "q"}, documents=DOCUMENTS, top_n=2, return_documents=True)
    assert [result["document"] for result in reply["results"]] == [{"text": "c"}, {"text": "a"}]


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("query", "", "query"),
        ("query", None, "query"),
        ("documents", [], "documents"),
        ("documents", "a", "documents"),
        ("documents", ["a", ""], "documents.1"),
        ("documents", ["a", {"text": "b", "title": "c"}], "documents.1"),
        ("documents", ["a", 1], "documents.1"),
        ("top_n", 0, "top_n"),
        ("rank_fields", ["text"], "rank_fields"),
        ("return_document", True, "return_document"),
    ],
)
def test_rerank_wrong_field_is_named(http: TestClient, field: str, value: object, named: str) -> None:
    reply = post(http, "/v1/rerank", 400, **{"query": "q", "documents": ["a"], field: value})
    assert reply["error"]["param"] == named


# --- Ollama


def test_embed_has_ollamas_shape(http: TestClient, service: ScriptedService) -> None:
    reply = post(
        http, "/api/embed", input=["a", "b"], dimensions=3, keep_alive=60, options={"num_ctx": 64, "seed": 1}
    )
    assert reply == {
        "model": MODEL,
        "embeddings": [[0, F32, -2.0], [1, F32, -2.0]],
        "total_duration": 23_000_000,
        "load_duration": 2_000_000,
        "prompt_eval_count": 12,
        "truncated": [{"index": 1, "tokens_cut": 7}],
    }
    (asked,) = service.looked_up
    assert isinstance(asked, EmbedRequest)
    assert (asked.truncate, asked.dimensions, asked.keep_alive, asked.options.ctx) == (True, 3, 60, 64)


def test_embed_name_with_latest_is_the_same_model(http: TestClient, service: ScriptedService) -> None:
    service.stored = [stored("tiny:1m")]
    reply = http.post("/api/embed", json={"model": "tiny:1m:latest", "input": "a"})
    assert reply.status_code == 200, reply.text


def test_embed_without_truncation_says_so_to_the_daemon(http: TestClient, service: ScriptedService) -> None:
    post(http, "/api/embed", input="a", truncate=False)
    (asked,) = service.looked_up
    assert isinstance(asked, EmbedRequest)
    assert not asked.truncate


def test_old_embeddings_are_as_the_model_makes_them(http: TestClient, service: ScriptedService) -> None:
    assert post(http, "/api/embeddings", prompt="a") == {"embedding": [0, F32, -2.0]}
    (asked,) = service.looked_up
    assert isinstance(asked, EmbedRequest)
    assert (asked.inputs, asked.normalize, asked.truncate) == (("a",), False, False)


@pytest.mark.parametrize(
    ("path", "fields", "reply"),
    [
        ("/api/embed", {}, {"model": MODEL, "embeddings": []}),
        ("/api/embed", {"input": ""}, {"model": MODEL, "embeddings": []}),
        ("/api/embed", {"input": []}, {"model": MODEL, "embeddings": []}),
        ("/api/embeddings", {}, {"embedding": []}),
        ("/api/embeddings", {"prompt": ""}, {"embedding": []}),
    ],
)
def test_embed_nothing_loads_the_model(
    http: TestClient, service: ScriptedService, path: str, fields: dict[str, Any], reply: dict[str, Any]
) -> None:
    assert post(http, path, **fields) == reply
    assert (service.looked_up, len(service.loads)) == ([], 1)
    assert post(http, path, keep_alive=0, **fields) == reply
    assert (service.looked_up, service.let_gone) == ([], [MODEL])


@pytest.mark.parametrize(
    ("path", "fields", "named"),
    [
        ("/api/embed", {"input": ["a", ""]}, "input.1"),
        ("/api/embed", {"input": ["a", 1]}, "input.1"),
        ("/api/embed", {"input": [[1, 2]]}, "input.0"),
        ("/api/embed", {"input": {"a": 1}}, "input"),
        ("/api/embed", {"input": "a", "dimensions": -1}, "dimensions"),
        ("/api/embed", {"prompt": "a"}, "prompt"),
        ("/api/embeddings", {"prompt": ["a"]}, "prompt"),
        ("/api/embeddings", {"input": "a"}, "input"),
    ],
)
def test_embed_wrong_field_is_named(http: TestClient, path: str, fields: dict[str, Any], named: str) -> None:
    assert post(http, path, 400, **fields)["error"].startswith(named)


@pytest.mark.parametrize(
    ("path", "body", "kind"),
    [
        ("/v1/embeddings", {"input": "a"}, "embedding"),
        ("/rerank", {"query": "q", "documents": ["a"]}, "reranker"),
    ],
)
def test_model_that_nobody_names_is_the_only_one_of_its_kind(
    http: TestClient, service: ScriptedService, path: str, body: dict[str, Any], kind: Any
) -> None:
    service.stored.append(replace(stored("other:1m"), kind=kind))
    assert http.post(path, json=body).json()["model"] == "other:1m"
    assert http.post(path, json={**body, "model": None}).json()["model"] == "other:1m"
    service.stored.append(replace(stored("third:1m"), kind=kind))
    reply = http.post(path, json=body)
    assert (reply.status_code, len(service.looked_up)) == (400, 2)
    assert "no model is named" in reply.text


# --- the official clients


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    service = ScriptedService(stored=[stored(MODEL)], lookup=vectors)
    with serving(service) as address:
        yield address


@pytest.mark.parametrize("wanted", [{}, {"encoding_format": "float"}, {"encoding_format": "base64"}])
def test_openais_client_reads_the_vectors(url: str, wanted: dict[str, Any]) -> None:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=10) as client:
        reply = client.embeddings.create(model=MODEL, input=["a", "b"], **wanted)
    assert reply.usage.total_tokens == 12
    shown = reply.data[1].embedding
    if wanted == {"encoding_format": "base64"}:
        assert isinstance(shown, str)
        shown = array("f", base64.b64decode(shown)).tolist()
    assert shown == pytest.approx(vector(1).numbers())


def test_ollamas_client_reads_the_vectors(url: str) -> None:
    with ollama.Client(host=url, timeout=10) as client:
        reply = client.embed(MODEL, ["a", "b"], truncate=False, dimensions=3, keep_alive="1m")
        assert [list(each) for each in reply.embeddings] == [vector(0).numbers(), vector(1).numbers()]
        assert reply.prompt_eval_count == 12
        assert list(client.embeddings(MODEL, "a").embedding) == vector(0).numbers()
