from __future__ import annotations

import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from llmrun.api.app import create_app
from llmrun.api.web import FOLDER, web_files
from llmrun.config import Settings
from tests.api.conftest import BASE
from tests.api.scripted import ScriptedService


def test_front_page_is_html_whose_files_are_all_there(http: TestClient) -> None:
    page = http.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    named = re.findall(r'(?:src|href)="(web/[^"]+)"', page.text)
    assert len(named) > 4
    types = {http.get(f"/{path}").headers["content-type"].partition(";")[0] for path in named}
    assert types == {"text/css", "text/javascript", "image/svg+xml"}


def test_every_module_imports_modules_that_are_served(http: TestClient) -> None:
    for path in FOLDER.glob("*.js"):
        for name in re.findall(
            r'^(?:import|export) .* from "\./(.+)";$', path.read_text("utf-8"), re.MULTILINE
        ):
            assert http.get(f"/web/{name}").status_code == 200, f"{path.name} imports {name}"


@pytest.mark.parametrize("path", ["/", "/web/app.js", "/web/theme.css"])
def test_policy_lets_the_page_run_and_ask_only_its_own(http: TestClient, path: str) -> None:
    headers = http.get(path).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["require-trusted-types-for"] == "'script'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"


def test_page_has_no_script_or_style_of_its_own(http: TestClient) -> None:
    text = http.get("/").text
    assert not re.search(r"<script(?![^>]*src=)|<style| style=| on\w+=", text)


def test_etag_known_to_the_browser_is_304_without_a_body(http: TestClient) -> None:
    first = http.get("/web/app.js")
    etag = first.headers["etag"]
    assert re.fullmatch(r'"[0-9a-f]{32}"', etag)
    assert first.headers["cache-control"] == "no-cache"
    for known in (etag, f'"other", W/{etag}', "*"):
        again = http.get("/web/app.js", headers={"if-none-match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
    assert http.get("/web/app.js", headers={"if-none-match": '"other"'}).content == first.content


def test_etag_follows_the_bytes(tmp_path: Path) -> None:
    page = tmp_path / "index.html"
    page.write_text("a")
    before = web_files(tmp_path)
    page.write_text("b")
    assert before["index.html"].etag != web_files(tmp_path)["index.html"].etag


def test_files_beside_the_page_are_not_served(http: TestClient) -> None:
    for path in (
        "/web/nothing.js",
        "/web/package.json",
        "/web/../api/web.py",
        "/web/%2e%2e%2fapi%2fweb.py",
        "/web/",
    ):
        assert http.get(path).status_code == 404, path


def test_page_needs_no_key_where_all_else_does(service: ScriptedService) -> None:
    app = create_app(service, Settings(api_key="s3cret"), lambda: None)
    with TestClient(app, base_url=BASE) as http:
        assert http.get("/").status_code == http.get("/web/app.js").status_code == 200
        assert http.get("/v1/models").status_code == http.get("/llmrun/ps").status_code == 401
