from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from llmrun.api.app import create_app
from llmrun.api.not_built import NOT_BUILT, asks_for
from llmrun.config import Settings
from tests.api.scripted import ScriptedService


@pytest.mark.parametrize("path", NOT_BUILT)
def test_route_that_is_not_built_says_what_it_asks_for(http: TestClient, path: str) -> None:
    for reply in (http.post(path, json={}), http.get(f"{path}/one")):
        assert reply.status_code == 404
        assert f"asks for {NOT_BUILT[path]}, which is not supported" in reply.text


def test_asks_for_whole_steps_of_a_path_alone() -> None:
    assert asks_for("/v1/filesystem") is None
    paths = create_app(ScriptedService(), Settings(), lambda: None).openapi()["paths"]
    assert [path for path in paths if asks_for(path)] == []
