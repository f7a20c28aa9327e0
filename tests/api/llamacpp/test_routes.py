from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from llmrun.api.app import create_app
from llmrun.api.choosing import chosen
from llmrun.config import Settings
from llmrun.errors import CONTEXT_LENGTH, OVERLOADED, RUNNER_DIED, LlmrunError
from llmrun.store.model import Beside
from llmrun.types import (
    AnyRequest,
    DetokenizeRequest,
    Event,
    Failed,
    Finished,
    GenerateRequest,
    Rendered,
    Started,
    Stopped,
    Text,
    Tokenized,
    TokenizeRequest,
    Usage,
)
from tests.api.openai.test_models import stored
from tests.api.scripted import MODEL, TIMINGS, ScriptedService
from tests.api.test_control import running
from tests.support.tiny import CHATML, write_llama

ASKING = [
    ("/completion", {"prompt": "Hi"}),
    ("/completions", {"prompt": "Hi"}),
    ("/infill", {"input_prefix": "a", "input_suffix": "b"}),
    ("/tokenize", {"content": "Hi"}),
    ("/detokenize", {"tokens": [1]}),
]
GENERATING = ASKING[:3]


async def answers(_: GenerateRequest) -> AsyncGenerator[Event, None]:
    yield Started(2, 42)
    yield Text(0, "Hello", tokens=(5, 6))
    yield Stopped(0, "stop", None, (1, 2, 5, 6))
    yield Finished(Usage(prompt=2, completion=2), TIMINGS)


async def looked_up(request: AnyRequest) -> AsyncGenerator[Event, None]:
    """A vocabulary in which each token is a character, and its id the character's number."""
    if isinstance(request, TokenizeRequest):
        pieces = tuple(c.encode() for c in request.text) if request.pieces else ()
        yield Tokenized(tuple(map(ord, request.text)), pieces)
    elif isinstance(request, DetokenizeRequest):
        yield Rendered(" ".join(map(str, request.tokens)))
    yield Finished(Usage(prompt=0, completion=0), TIMINGS)


@pytest.fixture
def service() -> ScriptedService:
    return ScriptedService(script=answers, lookup=looked_up, stored=[stored(MODEL)])


def data(text: str) -> list[dict[str, Any]]:
    return [json.loads(part.removeprefix("data: ")) for part in text.split("\n\n")[:-1]]


@pytest.mark.parametrize(("path", "body"), GENERATING)
def test_generation_whole_and_streamed_say_the_same(http: TestClient, path: str, body: Any) -> None:
    whole = http.post(path, json=body).json()
    streamed = http.post(path, json={**body, "stream": True})
    assert streamed.headers["content-type"].startswith("text/event-stream")
    *parts, last = data(streamed.text)
    assert "".join(part["content"] for part in parts) == whole["content"] == "Hello"
    assert (whole["stop_type"], whole["prompt"], last["prompt"]) == ("eos", "1 2", "1 2")
    assert [part["stop"] for part in parts] == [False] * len(parts)
    assert last["stop"]


def test_prompt_text_is_not_looked_up_where_it_is_not_wanted(
    http: TestClient, service: ScriptedService
) -> None:
    reply = http.post("/completion", json={"prompt": "Hi", "response_fields": ["content"]})
    assert reply.json() == {"content": "Hello"}
    assert service.looked_up == []


def test_logit_bias_of_texts_is_looked_up_first(http: TestClient, service: ScriptedService) -> None:
    http.post("/completion", json={"prompt": "Hi", "logit_bias": [["ab", 2], [9, False]]})
    assert service.asked[0].logit_bias == {97: 2.0, 98: 2.0, 9: float("-inf")}


def test_tokenize_ids_and_pieces(http: TestClient, service: ScriptedService) -> None:
    assert http.post("/tokenize", json={"content": "ab"}).json() == {"tokens": [97, 98]}
    both = http.post("/tokenize", json={"content": "a", "with_pieces": True, "add_special": True})
    assert both.json() == {"tokens": [{"id": 97, "piece": "a"}]}
    plain, marked = service.looked_up
    assert isinstance(plain, TokenizeRequest)
    assert isinstance(marked, TokenizeRequest)
    assert (plain.special, plain.edges, marked.edges) == (True, False, True)


def test_tokenize_piece_that_is_no_text_is_given_as_bytes(http: TestClient, service: ScriptedService) -> None:
    async def half(_: AnyRequest) -> AsyncGenerator[Event, None]:
        yield Tokenized((1,), (b"\xc3",))
        yield Finished(Usage(prompt=0, completion=0), TIMINGS)

    service.lookup = half
    reply = http.post("/tokenize", json={"content": "á", "with_pieces": True})
    assert reply.json() == {"tokens": [{"id": 1, "piece": [195]}]}


def test_detokenize_is_the_text(http: TestClient) -> None:
    assert http.post("/detokenize", json={"tokens": [1, 2]}).json() == {"content": "1 2"}


@pytest.mark.parametrize(("path", "body"), ASKING)
def test_model_that_is_named_is_the_one_that_answers(http: TestClient, path: str, body: Any) -> None:
    assert http.post(path, json={**body, "model": MODEL}).status_code == 200
    reply = http.post(path, json={**body, "model": "other"})  # B73
    assert (reply.status_code, reply.json()["error"]["type"]) == (404, "not_found_error")
    assert "llmrun pull other" in reply.json()["error"]["message"]


@pytest.mark.parametrize("name", [None, ""])
@pytest.mark.parametrize(
    ("names", "loaded", "used"),
    [
        (["a"], False, "a"),
        ([MODEL, "b"], True, MODEL),
        (["a", "smollm2:135m"], False, "smollm2:135m"),
        ([MODEL, "smollm2:135m"], True, MODEL),
    ],
)
def test_model_that_is_not_named_is_the_one_that_can_be_meant(
    names: list[str], loaded: bool, used: str, name: str | None
) -> None:
    service = ScriptedService(stored=[stored(name) for name in names], running=[running()] * loaded)
    assert asyncio.run(chosen(service, name)).name == used


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]}),
        ("/v1/completions", {"prompt": "Hi"}),
    ],
)
def test_model_may_be_left_out_of_openais_bodies_too(
    http: TestClient, service: ScriptedService, path: str, body: Any
) -> None:
    assert http.post(path, json=body).json()["model"] == MODEL
    service.stored = [stored("a"), stored("b")]
    reply = http.post(path, json=body)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "model")


def test_model_that_cannot_be_told_is_asked_for(http: TestClient, service: ScriptedService) -> None:
    service.stored = [stored("a"), stored("b"), stored("c", missing=True)]
    reply = http.post("/completion", json={"prompt": "Hi"})
    assert reply.status_code == 400
    assert reply.json()["error"]["message"] == (
        'no model is named, and none of the 2 models here is loaded. say which: "model": "NAME"'
    )


def test_model_where_there_is_none_is_the_default_to_pull(http: TestClient, service: ScriptedService) -> None:
    service.stored = []
    reply = http.post("/completion", json={"prompt": "Hi"})
    assert reply.status_code == 404
    assert "llmrun pull smollm2:135m" in reply.json()["error"]["message"]


@pytest.mark.parametrize(("path", "body"), ASKING)
def test_errors_have_llama_servers_shape(http: TestClient, path: str, body: Any) -> None:
    reply = http.post(path, json={**body, "model": 5})
    assert reply.json() == {
        "error": {
            "code": 400,
            "message": "model should be a string, not 5",
            "type": "invalid_request_error",
        }
    }
    assert http.post(path, content=b"{", headers={"content-type": "application/json"}).status_code == 400
    assert http.get(path).json()["error"]["code"] == 405


def test_errors_prompt_too_long_says_both_numbers(http: TestClient, service: ScriptedService) -> None:
    async def too_long(_: GenerateRequest) -> AsyncGenerator[Event, None]:
        yield Failed(LlmrunError(CONTEXT_LENGTH, "too long", prompt_tokens=9, context=8).info())

    service.script = too_long
    for stream in (False, True):
        reply = http.post("/completion", json={"prompt": "Hi", "stream": stream})
        error = reply.json()["error"]
        assert reply.status_code == error["code"] == 400
        assert (error["type"], error["n_prompt_tokens"], error["n_ctx"]) == (
            "exceed_context_size_error",
            9,
            8,
        )


def test_errors_full_queue_is_unavailable_and_says_when(http: TestClient, service: ScriptedService) -> None:
    async def full(_: GenerateRequest) -> AsyncGenerator[Event, None]:
        yield Failed(LlmrunError(OVERLOADED, "too many").info())

    service.script = full
    reply = http.post("/completion", json={"prompt": "Hi"})
    assert (reply.status_code, reply.json()["error"]["type"]) == (503, "unavailable_error")
    assert "retry-after" in reply.headers


def test_errors_in_the_middle_of_a_stream_are_its_last_event(
    http: TestClient, service: ScriptedService
) -> None:
    async def dies(_: GenerateRequest) -> AsyncGenerator[Event, None]:
        yield Started(2, 42)
        yield Text(0, "Hel", tokens=(5,))
        yield Failed(LlmrunError(RUNNER_DIED, "it died").info())

    service.script = dies
    first, last = data(http.post("/completion", json={"prompt": "Hi", "stream": True}).text)
    assert first["content"] == "Hel"
    assert (last["error"]["code"], last["error"]["type"]) == (500, "server_error")


def test_props_of_a_loaded_model(http: TestClient, service: ScriptedService, tmp_path: Path) -> None:
    path = write_llama(tmp_path / "tiny.gguf")
    service.stored = [replace(stored(MODEL), path=path)]
    service.running = [running()]
    props = http.get("/props").json()
    assert (props["total_slots"], props["model_alias"], props["model_path"]) == (2, MODEL, str(path))
    assert props["chat_template"] == CHATML
    assert props["default_generation_settings"]["n_ctx"] == 2048
    assert props["default_generation_settings"]["params"]["top_k"] == 40
    assert not props["is_sleeping"]
    assert http.get("/props?model=other").status_code == 404


def test_props_of_a_model_that_is_not_loaded(
    http: TestClient, service: ScriptedService, tmp_path: Path
) -> None:
    path = write_llama(tmp_path / "tiny.gguf")
    service.stored = [replace(stored(MODEL), path=path, template="{{ mine }}")]
    props = http.get("/props").json()
    assert (props["is_sleeping"], props["chat_template"]) == (True, "{{ mine }}")
    assert props["default_generation_settings"]["n_ctx"] == 8192
    app = create_app(service, Settings(ctx=1024), lambda: None)
    with TestClient(app, base_url=str(http.base_url)) as set_so:
        assert set_so.get("/props").json()["default_generation_settings"]["n_ctx"] == 1024


@pytest.mark.parametrize(
    ("path", "same"),
    [
        ("/models", "/v1/models"),
        ("/v1/health", "/health"),
    ],
)
def test_route_under_its_other_name_says_the_same(
    http: TestClient, service: ScriptedService, path: str, same: str
) -> None:
    service.stored = [stored(MODEL)]
    assert http.get(path).json() == http.get(same).json()


def test_chat_without_a_version_in_its_path_is_the_same(http: TestClient) -> None:
    asked = {"model": MODEL, "messages": [{"role": "user", "content": "Hi"}]}
    bare, versioned = (http.post(f"{path}/chat/completions", json=asked).json() for path in ("", "/v1"))
    assert bare["choices"] == versioned["choices"]
    error = http.post("/chat/completions", json={**asked, "top_p": 2}).json()["error"]
    assert (error["param"], error["code"]) == ("top_p", "invalid_request")


def test_slots_say_which_places_are_in_use(http: TestClient, service: ScriptedService) -> None:
    assert http.get("/slots").json() == []
    service.running = [running()]
    assert http.get("/slots").json() == [
        {"id": number, "n_ctx": 2048, "speculative": False, "is_processing": True} for number in range(2)
    ]
    reply = http.get("/slots?fail_on_no_slot=1")
    assert (reply.status_code, reply.json()["error"]["type"]) == (503, "unavailable_error")


def test_adapters_are_listed_as_a_request_numbers_them(http: TestClient, service: ScriptedService) -> None:
    assert http.get("/lora-adapters").json() == []
    beside = tuple(Beside(Path(f"/models/{name}.gguf"), "", 1) for name in "ab")
    service.stored[0] = replace(service.stored[0], adapters=beside)
    assert http.get("/lora-adapters", params={"model": MODEL}).json() == [
        {"id": 0, "path": "/models/a.gguf", "scale": 1.0},
        {"id": 1, "path": "/models/b.gguf", "scale": 1.0},
    ]


def test_adapters_set_for_everybody_are_refused_with_what_to_do_instead(http: TestClient) -> None:
    reply = http.post("/lora-adapters", json=[{"id": 0, "scale": 0.5}])
    assert (reply.status_code, reply.headers["allow"]) == (405, "GET")
    assert "send lora with each request" in reply.json()["error"]["message"]


def test_page_that_looks_for_a_stream_to_go_on_with_is_told_there_is_none(http: TestClient) -> None:
    """llama-server's own page does so when it is loaded anew, and then shows what it has."""
    asked = [
        http.post("/v1/streams/lookup", json={"conversation_ids": ["a"]}),
        http.get("/v1/stream", params={"conv_id": "a", "from": 0}),
        http.delete("/v1/stream", params={"conv_id": "a"}),
        http.post("/v1/chat/completions/control", json={"id": "chatcmpl-a", "action": "reasoning_end"}),
    ]
    assert [reply.status_code for reply in asked] == [404] * 4
    assert all("error" in reply.json() for reply in asked)
