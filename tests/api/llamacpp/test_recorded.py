"""What clients of llama-server send is taken, and what they read is there."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from tests.api.llamacpp.recorded import Recorded, has, parts, recorded
from tests.api.openai.test_models import stored
from tests.api.scripted import MODEL, ScriptedService


@pytest.mark.parametrize("sent", recorded(), ids=str)
def test_recorded_request_is_taken_and_has_what_its_client_reads(
    sent: Recorded, http: TestClient, service: ScriptedService
) -> None:
    service.stored.append(stored(MODEL))
    reply = http.post(sent.path, json=sent.body_for(MODEL))
    assert reply.status_code == 200, reply.text
    assert [each.model for each in service.asked] == [MODEL]
    got = parts(reply.text)
    assert [path for path in sent.reads if not any(has(part, path) for part in got)] == []
