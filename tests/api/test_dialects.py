"""What every route that generates does alike, whichever dialect it speaks."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, get_args

import pytest
from starlette.testclient import TestClient

from llmrun.errors import CONTEXT_LENGTH, INTERNAL, OVERLOADED, Kind, LlmrunError
from llmrun.types import Event, Failed, GenerateRequest, Limit
from tests.api.openai.test_models import stored
from tests.api.scripted import MODEL, ScriptedService, answer
from tests.api.test_liveness import ROUTES

CHATS = [path for path, body in ROUTES.items() if "messages" in body]


@pytest.fixture(autouse=True)
def _one_model(service: ScriptedService) -> None:
    service.stored = [stored(MODEL)]


def fails(kind: Kind, message: str, **details: Any) -> Any:
    async def script(_: GenerateRequest) -> AsyncGenerator[Event, None]:
        yield Failed(LlmrunError(kind, message, **details).info())

    return script


def ask(http: TestClient, path: str, **fields: Any) -> Any:
    return http.post(path, json={"model": MODEL, **ROUTES[path], **fields})


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", ROUTES)
def test_prompt_too_long_is_a_400_with_both_numbers_each_time(  # B20, B22
    http: TestClient, service: ScriptedService, path: str, stream: bool
) -> None:
    message = "the prompt has 9001 tokens, but the context holds 2048"
    service.script = fails(CONTEXT_LENGTH, message, prompt_tokens=9001, context=2048)
    replies = [ask(http, path, stream=stream) for _ in range(20)]
    assert {reply.status_code for reply in replies} == {400}
    assert all(message in reply.text for reply in replies)


@pytest.mark.parametrize(
    ("kind", "statuses"), [(INTERNAL, {500}), (OVERLOADED, {503, 529})], ids=["internal", "overloaded"]
)
@pytest.mark.parametrize("path", ROUTES)
def test_failure_before_a_stream_began_has_its_own_status(
    http: TestClient, service: ScriptedService, path: str, kind: Kind, statuses: set[int]
) -> None:
    service.script = fails(kind, "it went wrong")
    for stream in (False, True):
        assert ask(http, path, stream=stream).status_code in statuses


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b'"x"', b'{"prompt": "\xff"}', b"[" * 100_000], ids=range(6)
)
@pytest.mark.parametrize("path", ROUTES)
def test_body_that_is_no_json_object_is_a_400_and_the_next_is_served(  # B55
    http: TestClient, path: str, raw: bytes
) -> None:
    reply = http.post(path, content=raw, headers={"content-type": "application/json"})
    assert reply.status_code == 400
    assert ask(http, path).status_code == 200


@pytest.mark.parametrize("path", CHATS)
@pytest.mark.parametrize(
    ("messages", "field"),
    [
        ({"role": "user", "content": "Hi"}, "messages"),  # B57
        ([{"content": "Hi"}], "messages.0.role"),
        ([{"role": "wizard", "content": "Hi"}], "messages.0.role"),
        ([{"role": "user", "content": 5}], "messages.0.content"),
    ],
)
def test_messages_of_another_shape_are_a_400_that_names_the_place(
    http: TestClient, path: str, messages: Any, field: str
) -> None:
    reply = ask(http, path, messages=messages)
    assert reply.status_code == 400
    assert field in reply.text


IMAGE: dict[str, Any] = {
    "/v1/chat/completions": {"content": [{"type": "image_url", "image_url": {"url": "data:,x"}}]},
    "/v1/responses": {"content": [{"type": "input_image", "image_url": "data:,x"}]},
    "/v1/messages": {"content": [{"type": "image", "source": {"type": "url", "url": "http://127.0.0.1/x"}}]},
    "/api/chat": {"content": "What is it?", "images": ["eA=="]},
}


@pytest.mark.parametrize("path", IMAGE)
def test_image_for_a_model_of_text_is_a_400_that_says_so(
    http: TestClient, service: ScriptedService, path: str
) -> None:
    field = "input" if path == "/v1/responses" else "messages"
    reply = ask(http, path, **{field: [{"role": "user", **IMAGE[path]}]})
    assert (reply.status_code, service.asked) == (400, [])
    assert "image input" in reply.text


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
def test_content_in_two_parts_reaches_the_prompt_in_order(  # B58
    http: TestClient, service: ScriptedService, path: str
) -> None:
    field, kind = ("input", "input_text") if path == "/v1/responses" else ("messages", "text")
    parts = [{"type": kind, "text": "first"}, {"type": kind, "text": "second"}]
    assert ask(http, path, **{field: [{"role": "user", "content": parts}]}).status_code == 200
    (turn,) = service.asked[-1].messages or ()
    assert turn.content == "first\nsecond"


WRONG: list[dict[str, Any]] = [
    {"temperature": -1},
    {"temperature": "warm"},
    {"top_p": 1.5},
    {"top_k": 0.5},
    {"stream": "yes"},
    {"model": 5},
]


@pytest.mark.parametrize("fields", WRONG, ids=str)
@pytest.mark.parametrize("path", ROUTES)
def test_value_of_a_wrong_type_or_out_of_range_is_a_400_that_names_it(
    http: TestClient, service: ScriptedService, path: str, fields: dict[str, Any]
) -> None:
    (name,) = fields
    of_ollama = path.startswith("/api/") and name not in ("stream", "model")
    reply = ask(http, path, **({"options": fields} if of_ollama else fields))
    assert (reply.status_code, service.asked) == (400, [])
    assert f"{name} should be" in reply.text


@pytest.mark.parametrize("path", ROUTES)
def test_empty_stop_string_is_a_400_and_an_empty_list_of_them_is_none(
    http: TestClient, service: ScriptedService, path: str
) -> None:
    if path == "/v1/responses":
        pytest.skip("it has no stop strings")

    def stops(*texts: str) -> Any:
        if path.startswith("/api/"):
            return ask(http, path, options={"stop": texts})
        return ask(http, path, **{"stop_sequences" if path == "/v1/messages" else "stop": texts})

    assert stops("x", "").status_code == 400
    assert stops().status_code == 200
    assert service.asked[-1].options.stop == ()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", ROUTES)
def test_answer_cut_by_any_limit_says_by_which_and_one_that_ended_says_nothing_of_it(
    http: TestClient, service: ScriptedService, path: str, stream: bool
) -> None:
    limit: Limit | None

    async def cut(_: GenerateRequest) -> AsyncGenerator[Event, None]:
        for event in answer("Hello", reason="length" if limit else "stop", limit=limit):
            yield event

    service.script = cut
    for limit in get_args(Limit):
        assert f'"limit":"{limit}"' in ask(http, path, stream=stream).text.replace(": ", ":")
    limit = None
    assert '"limit":' not in ask(http, path, stream=stream).text


@pytest.mark.parametrize("path", ROUTES)
def test_model_that_is_not_here_is_a_404_and_answered_by_no_other(  # B73
    http: TestClient, service: ScriptedService, path: str
) -> None:
    reply = ask(http, path, model="other:1b")
    assert (reply.status_code, service.asked) == (404, [])
    assert "other:1b" in reply.text


@pytest.mark.parametrize("path", ROUTES)
def test_field_that_nobody_knows_is_a_400_that_names_it(http: TestClient, path: str) -> None:
    reply = ask(http, path, temprature=1)
    assert reply.status_code == 400
    assert "temprature" in reply.text


@pytest.mark.parametrize("path", ROUTES)
def test_page_of_another_site_runs_no_model(http: TestClient, service: ScriptedService, path: str) -> None:
    plain = http.post(path, content=b"{}", headers={"content-type": "text/plain", "origin": "null"})
    foreign = http.post(path, json=ROUTES[path], headers={"origin": "http://evil.example"})
    assert plain.status_code in (403, 415)
    assert foreign.status_code == 403
    assert service.asked == []
