"""Every refusal that is for now says when to come again, in every dialect."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from starlette.testclient import TestClient

from llmrun.errors import KINDS, MODEL_LOAD, Kind, LlmrunError
from llmrun.types import Event
from tests.api.openai.test_models import stored
from tests.api.scripted import MODEL, ScriptedService

TURNS = [{"role": "user", "content": "hi"}]
ROUTES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": TURNS},
    "/v1/completions": {"prompt": "hi"},
    "/v1/responses": {"input": "hi"},
    "/v1/messages": {"messages": TURNS, "max_tokens": 5},
    "/v1/embeddings": {"input": "hi"},
    "/api/chat": {"messages": TURNS},
    "/api/generate": {"prompt": "hi"},
    "/api/embed": {"input": "hi"},
    "/completion": {"prompt": "hi"},
}
BUSY = [kind for kind in KINDS.values() if kind.status in (429, 503)]


@pytest.fixture
def service() -> ScriptedService:
    return ScriptedService(stored=[stored(MODEL)])


def refuse(service: ScriptedService, kind: Kind, **details: object) -> None:
    async def script(_request: object) -> AsyncGenerator[Event, None]:
        raise LlmrunError(kind, "not now", **details)
        yield

    service.script = service.lookup = script


@pytest.mark.parametrize("kind", BUSY, ids=lambda kind: kind.code)
@pytest.mark.parametrize("path", ROUTES)
def test_refusal_for_now_says_when_to_come_again(
    http: TestClient, service: ScriptedService, path: str, kind: Kind
) -> None:
    refuse(service, kind)
    for stream in (False, True):
        more = {} if "embed" in path else {"stream": stream}
        reply = http.post(path, json={"model": MODEL, **ROUTES[path], **more})
        assert reply.status_code in (429, 503, 529), reply.text
        assert int(reply.headers["retry-after"]) >= 1


def test_failure_that_knows_when_it_is_tried_again_says_so(
    http: TestClient, service: ScriptedService
) -> None:
    refuse(service, MODEL_LOAD, retry_after=3.2)
    reply = http.post("/v1/completions", json={"model": MODEL, "prompt": "hi"})
    assert (reply.status_code, reply.headers["retry-after"]) == (500, "4")
    refuse(service, MODEL_LOAD)
    reply = http.post("/v1/completions", json={"model": MODEL, "prompt": "hi"})
    assert "retry-after" not in reply.headers
