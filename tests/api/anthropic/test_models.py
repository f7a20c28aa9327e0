from __future__ import annotations

from starlette.testclient import TestClient

from tests.api.openai.test_models import stored
from tests.api.scripted import ScriptedService

THEIRS = {"anthropic-version": "2023-06-01"}


def test_models_in_the_shape_of_the_client_that_asks(http: TestClient, service: ScriptedService) -> None:
    service.stored = [stored("tiny:1m"), stored("gone", missing=True), stored("other")]
    page = http.get("/v1/models", headers=THEIRS).json()
    first = page["data"][0]
    assert first == {
        "type": "model",
        "id": "tiny:1m",
        "display_name": "tiny:1m",
        "created_at": "2026-01-02T00:00:00Z",
        "lifecycle": "active",
        "max_input_tokens": 8192,
        "max_tokens": 8192,
    }
    assert [model["id"] for model in page["data"]] == ["tiny:1m", "other"]
    assert (page["first_id"], page["last_id"], page["has_more"]) == ("tiny:1m", "other", False)
    assert http.get("/v1/models/tiny:1m", headers=THEIRS).json() == first
    assert http.get("/v1/models").json()["object"] == "list"
    assert http.get("/v1/models/tiny:1m").json()["object"] == "model"


def test_models_empty_page(http: TestClient) -> None:
    page = http.get("/v1/models", headers=THEIRS).json()
    assert page == {"data": [], "has_more": False, "first_id": None, "last_id": None}


def test_unknown_model_in_the_shape_of_the_client_that_asks(http: TestClient) -> None:
    theirs = http.get("/v1/models/nobody", headers=THEIRS)
    assert (theirs.status_code, theirs.json()["error"]["type"]) == (404, "not_found_error")
    assert http.get("/v1/models/nobody").json()["error"]["code"] == "model_not_found"
