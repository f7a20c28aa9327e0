"""Keys at the whole app: what each may do, what it is told where it may not, and what is counted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from llmrun.access.gate import Gate
from llmrun.access.keyring import Keyring
from llmrun.access.usage import UsageLog
from llmrun.api.app import create_app
from llmrun.api.permits import PermittedService, note_permit
from llmrun.config import Settings
from llmrun.types import Event, Finished, GenerateRequest, Options, Stopped, Text
from tests.api.conftest import BASE
from tests.api.openai.test_models import stored
from tests.api.scripted import MODEL, ScriptedService, answer

CHAT = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 50}
DIALECTS = {
    "/v1/chat/completions": CHAT,
    "/v1/messages": CHAT,
    "/api/chat": {"model": MODEL, "messages": CHAT["messages"]},
    "/completion": {"model": MODEL, "prompt": "hi"},
}


@pytest.fixture
def service() -> ScriptedService:
    return ScriptedService(stored=[stored(MODEL)])


@pytest.fixture
def ring(tmp_path: Path) -> Keyring:
    return Keyring(tmp_path / "keys.json")


@pytest.fixture
def gate(ring: Keyring, tmp_path: Path) -> Gate:
    return Gate("owner", ring, UsageLog(tmp_path / "usage.json"))


@pytest.fixture
def http(service: ScriptedService, gate: Gate, shutdowns: list[str]) -> Iterator[TestClient]:
    app = create_app(service, Settings(), lambda: shutdowns.append("asked"), gate=gate)
    with TestClient(app, base_url=BASE, raise_server_exceptions=False) as client:
        yield client


def bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


@pytest.mark.parametrize("path", DIALECTS)
def test_refusals_have_status_and_shape_of_every_dialect(http: TestClient, ring: Keyring, path: str) -> None:
    ring.create("other")
    limited, narrow = ring.create("limited", requests_per_minute=1), ring.create("narrow", models=("big:*",))
    wrong = http.post(path, json=DIALECTS[path], headers=bearer("wrong"))
    foreign = http.post(path, json=DIALECTS[path], headers=bearer(narrow))
    assert http.post(path, json=DIALECTS[path], headers=bearer(limited)).status_code == 200
    often = http.post(path, json=DIALECTS[path], headers=bearer(limited))
    assert [reply.status_code for reply in (wrong, foreign, often)] == [401, 403, 429]
    assert 0 < int(often.headers["retry-after"]) <= 60
    error = often.json()["error"]
    assert "limited may send 1 requests a minute" in (error if path == "/api/chat" else error["message"])
    if path != "/api/chat":
        types = [reply.json()["error"]["type"] for reply in (foreign, often)]
        assert types[1] == "rate_limit_error"
        assert types[0] == ("invalid_request_error" if path.startswith("/v1/chat") else "permission_error")


def test_models_list_shows_what_a_key_may_use(http: TestClient, ring: Keyring) -> None:
    narrow, wide = ring.create("narrow", models=("big:*",)), ring.create("wide")
    assert http.get("/v1/models", headers=bearer(narrow)).json()["data"] == []
    assert [one["id"] for one in http.get("/v1/models", headers=bearer(wide)).json()["data"]] == [MODEL]
    assert http.get(f"/v1/models/{MODEL}", headers=bearer(narrow)).status_code == 403


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/llmrun/shutdown", {}),
        ("POST", "/llmrun/stop", {}),
        ("POST", "/api/pull", {"model": "x", "stream": False}),
        ("POST", "/api/pull", {"model": "x"}),
        ("POST", "/api/copy", {"source": MODEL, "destination": "y"}),
        ("POST", "/api/create", {"model": "y", "from": MODEL, "stream": False}),
        ("POST", "/api/generate", {"model": MODEL, "prompt": "x", "template": "{{ prompt }}"}),
        ("POST", "/api/generate", {"model": MODEL, "keep_alive": 0}),
        ("POST", "/api/embed", {"model": MODEL, "input": [], "keep_alive": 0}),
        ("DELETE", "/api/delete", {"model": MODEL}),
        ("HEAD", f"/api/blobs/sha256:{'0' * 64}", None),
        ("POST", f"/api/blobs/sha256:{'0' * 64}", None),
    ],
)
def test_key_that_is_no_admins_changes_nothing(
    http: TestClient,
    ring: Keyring,
    service: ScriptedService,
    shutdowns: list[str],
    method: str,
    path: str,
    body: dict[str, object] | None,
) -> None:
    guest, admin = ring.create("guest"), ring.create("admin", admin=True)
    assert http.request(method, path, json=body, headers=bearer(guest)).status_code == 403
    touched = (shutdowns, service.stopped, service.removed, service.copied, service.created, service.asked)
    assert not service.let_gone
    assert not any(touched)
    assert http.request(method, path, json=body, headers=bearer(admin)).status_code != 403


def test_tokens_are_counted_and_the_rest_of_the_day_bounds_an_answer(
    http: TestClient, ring: Keyring, gate: Gate, service: ScriptedService
) -> None:
    async def long(_: GenerateRequest) -> AsyncGenerator[Event, None]:
        for event in answer(*"abcdefgh", prompt=10):
            yield event

    service.script = long
    secret = ring.create("guest", tokens_per_day=30)
    assert http.post("/v1/chat/completions", json=CHAT, headers=bearer(secret)).status_code == 200
    assert http.post("/v1/chat/completions", json={**CHAT, "n": 2}, headers=bearer(secret)).status_code == 200
    assert [request.options.max_tokens for request in service.asked] == [30, 6]
    refused = http.post("/v1/chat/completions", json=CHAT, headers=bearer(secret))
    assert refused.status_code == 429
    assert refused.json()["error"]["code"] == "token_budget_spent"
    assert 0 < int(refused.headers["retry-after"]) <= 86400
    (key,) = ring.entries()
    used = gate.used(key)
    assert (used.requests, used.prompt_tokens, used.completion_tokens) == (3, 20, 11)
    page = http.get("/metrics", headers=bearer("owner")).text
    assert 'llmrun_key_requests_total{key="guest"} 3.0' in page
    assert 'llmrun_key_completion_tokens_total{key="guest"} 11.0' in page
    assert 'llmrun_key_refused_total{key="guest",reason="token_budget_spent"} 1.0' in page


def test_requests_at_the_same_time_share_the_tokens_of_the_day(ring: Keyring, gate: Gate) -> None:
    async def long(_: GenerateRequest) -> AsyncGenerator[Event, None]:
        for event in answer(*("word " * 200).split(), prompt=10):
            await asyncio.sleep(0)
            yield event

    async def ask(service: PermittedService, number: int) -> list[Event]:
        request = GenerateRequest(id=str(number), model=MODEL, prompt="x")
        return [event async for event in service.ask(request)]

    async def story() -> list[list[Event]]:
        service = PermittedService(ScriptedService(script=long, stored=[stored(MODEL)]), gate)
        note_permit(key)
        return list(await asyncio.gather(*(ask(service, number) for number in range(5))))

    ring.create("guest", tokens_per_day=100)
    (key,) = ring.entries()
    answers = asyncio.run(story())
    for events in answers:
        assert [type(event) for event in events[-2:]] == [Stopped, Finished]
        assert isinstance(events[-2], Stopped)
        assert events[-2].reason == "length"
        assert isinstance(events[-1], Finished)
        assert events[-1].usage.completion == sum(isinstance(event, Text) for event in events)
    used = gate.used(key)
    assert used.prompt_tokens == 50
    assert 50 <= used.completion_tokens <= 55


def test_answer_that_fails_midway_is_charged_for_what_came(
    http: TestClient, ring: Keyring, gate: Gate, service: ScriptedService
) -> None:
    async def broken(_: GenerateRequest) -> AsyncGenerator[Event, None]:
        for event in answer("a", "b", "c", prompt=10)[:4]:
            yield event
        raise RuntimeError

    service.script = broken
    secret = ring.create("guest")
    assert http.post("/v1/chat/completions", json=CHAT, headers=bearer(secret)).status_code == 500
    (key,) = ring.entries()
    assert (gate.used(key).prompt_tokens, gate.used(key).completion_tokens) == (10, 2)


def test_modelfiles_own_limit_is_not_lengthened_by_a_budget(
    http: TestClient, ring: Keyring, service: ScriptedService
) -> None:
    service.stored = [replace(service.stored[0], options=Options(max_tokens=7))]
    secret = ring.create("guest", tokens_per_day=1000)
    body = {"model": MODEL, "messages": CHAT["messages"]}
    assert http.post("/v1/chat/completions", json=body, headers=bearer(secret)).status_code == 200
    assert service.asked[0].options.max_tokens is None


FILES = ("/etc/passwd", "./x.gguf", "../x", "~/x.gguf", "x.gguf")


NAMING = {**DIALECTS, "/api/show": {}, "/v1/embeddings": {"input": "x"}, "/tokenize": {"content": "x"}}


@pytest.mark.parametrize("path", NAMING)
def test_key_that_is_no_admins_names_no_files(
    http: TestClient, ring: Keyring, service: ScriptedService, path: str
) -> None:
    """It could learn which files there are, and load them."""
    guest = ring.create("guest", models=("*",))
    for file in FILES:
        reply = http.post(path, json={**NAMING[path], "model": file}, headers=bearer(guest))
        assert (reply.status_code, "files by their paths" in reply.text) == (403, True)
    assert not service.asked
    assert not service.looked_up


def test_key_that_is_no_admins_does_not_say_how_long_a_model_stays(
    http: TestClient, ring: Keyring, service: ScriptedService
) -> None:
    guest, admin = ring.create("guest"), ring.create("admin", admin=True)
    body = {**DIALECTS["/api/chat"], "keep_alive": -1, "stream": False}
    for secret in (guest, admin):
        assert http.post("/api/chat", json=body, headers=bearer(secret)).status_code == 200
    assert [request.keep_alive for request in service.asked] == [None, float("inf")]
    load = {"model": MODEL, "keep_alive": -1}
    for secret in (guest, admin):
        assert http.post("/api/generate", json=load, headers=bearer(secret)).status_code == 200
    assert [request.keep_alive for request in service.loads] == [None, float("inf")]


def test_key_that_is_no_admins_does_not_have_a_model_loaded_anew_for_more_context(
    http: TestClient, ring: Keyring, service: ScriptedService
) -> None:
    guest, admin = ring.create("guest"), ring.create("admin", admin=True)
    body = {**DIALECTS["/api/chat"], "options": {"num_ctx": 9999, "seed": 5}, "stream": False}
    for secret in (guest, admin):
        assert http.post("/api/chat", json=body, headers=bearer(secret)).status_code == 200
    assert [request.options.ctx for request in service.asked] == [None, 9999]
    assert [request.options.seed for request in service.asked] == [5, 5]


def test_key_that_is_no_admins_is_one_asker_and_goes_before_nobody(
    http: TestClient, ring: Keyring, service: ScriptedService
) -> None:
    guest, admin = ring.create("guest"), ring.create("admin", admin=True)
    for secret in (guest, admin):
        for program in "ab":
            body = {**CHAT, "user": program, "priority": -5}
            headers = {**bearer(secret), "user-agent": program}
            assert http.post("/v1/chat/completions", json=body, headers=headers).status_code == 200
    one, two, three, four = service.asked
    assert one.client == two.client != three.client != four.client
    assert [request.priority for request in service.asked] == [0, 0, -5, -5]


def test_key_for_some_models_does_not_see_the_numbers_of_all(http: TestClient, ring: Keyring) -> None:
    narrow, wide = ring.create("narrow", models=("tiny:*",)), ring.create("wide")
    assert http.get("/metrics", headers=bearer(narrow)).status_code == 403
    assert http.get("/metrics", headers=bearer(wide)).status_code == 200


def test_response_is_shown_to_nobody_but_the_key_that_asked(http: TestClient, ring: Keyring) -> None:
    one, other = ring.create("one"), ring.create("other", admin=True)
    body = {"model": MODEL, "input": "hi"}
    made = http.post("/v1/responses", json=body, headers=bearer(one)).json()
    route, further = f"/v1/responses/{made['id']}", {**body, "previous_response_id": made["id"]}
    for secret in (other, "owner"):
        assert http.get(route, headers=bearer(secret)).status_code == 404
        assert http.delete(route, headers=bearer(secret)).status_code == 404
        assert http.post("/v1/responses", json=further, headers=bearer(secret)).status_code == 400
    assert http.get(route, headers=bearer(one)).json() == made
    assert http.post("/v1/responses", json=further, headers=bearer(one)).status_code == 200


def test_page_of_the_daemon_is_open_without_a_key(http: TestClient, ring: Keyring) -> None:
    ring.create("guest")
    assert http.get("/health").status_code == 200
    assert http.get("/metrics").status_code == 401


def test_watching_what_runs_uses_up_none_of_a_keys_requests(http: TestClient, ring: Keyring) -> None:
    secret = ring.create("guest", requests_per_minute=1)
    assert [http.get("/llmrun/ps", headers=bearer(secret)).status_code for _ in range(5)] == [200] * 5
    assert http.post("/v1/chat/completions", json=CHAT, headers=bearer(secret)).status_code == 200
    assert http.post("/v1/chat/completions", json=CHAT, headers=bearer(secret)).status_code == 429
    assert http.get("/llmrun/ps", headers=bearer(secret)).status_code == 200
    assert (
        http.get("/llmrun/ps").status_code == http.get("/llmrun/ps", headers=bearer("no")).status_code == 401
    )


def test_preflight_of_an_allowed_page_passes_without_the_key_it_asks_to_send(
    http: TestClient, ring: Keyring
) -> None:
    ring.create("guest")
    asks = {"access-control-request-method": "POST", "access-control-request-headers": "authorization"}
    page, foreign = {"origin": "http://localhost:3000", **asks}, {"origin": "https://evil.example", **asks}
    reply = http.options("/v1/chat/completions", headers=page)
    assert (reply.status_code, reply.headers["access-control-allow-headers"]) == (204, "authorization")
    assert http.options("/v1/chat/completions", headers=foreign).status_code == 403
    assert http.options("/v1/chat/completions", headers={"origin": page["origin"]}).status_code == 401


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/v1/models?api_key={}&key={}", {}),
        ("/v1/models", {"cookie": "authorization={}"}),
        ("/v1/models", {"authorization": "Basic {}"}),
        ("/v1/models", {"authorization": "{}"}),
        ("/v1/models", {"authorization": "Bearer {}x"}),
        ("/v1/models", {"proxy-authorization": "Bearer {}"}),
        ("/v1/models", {"x-api-key": "Bearer {}"}),
        ("/v1/models", {"authorization": "Bearer wrong", "x-api-key": "{}"}),
        ("/web/../v1/models", {"authorization": "wrong"}),
        ("//health/../v1/models", {}),
    ],
)
def test_key_in_an_odd_place_lets_nobody_in(
    http: TestClient, ring: Keyring, path: str, headers: dict[str, str]
) -> None:
    secret = ring.create("guest")
    sent = {name: value.format(secret) for name, value in headers.items()}
    reply = http.get(path.format(secret, secret), headers=sent)
    assert reply.status_code in (401, 404)
    assert "data" not in reply.json()
