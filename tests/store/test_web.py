"""Proxies, certificates, redirects and waiting, against real servers."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path

import pytest

from llmrun.errors import DOWNLOAD, LlmrunError
from llmrun.store import web
from llmrun.store.download import download
from llmrun.store.progress import Meter
from llmrun.store.wanted import Wanted
from tests.store.server import Fault, Host, serving

BODY = b"GGUF" + bytes(range(256)) * 9_000
PATH = "/x.gguf"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate for this machine that nobody trusts, in one file."""
    folder = tmp_path_factory.mktemp("tls 模型")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
            *("-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-addext", "basicConstraints=critical,CA:TRUE", "-keyout", "key.pem", "-out", "cert.pem"),
        ],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    both = folder / "both.pem"
    both.write_bytes((folder / "key.pem").read_bytes() + (folder / "cert.pem").read_bytes())
    return both


@pytest.fixture
def secure(certificate: Path) -> Iterator[Host]:
    with serving(certificate) as running:
        yield running


def fetch(url: str, folder: Path) -> bytes:
    download(Wanted(url), folder / "x.gguf", Meter(None))
    return (folder / "x.gguf").read_bytes()


def test_download_own_certificate_is_refused_with_the_mend(secure: Host, tmp_path: Path) -> None:
    with pytest.raises(LlmrunError) as caught:
        fetch(secure.put(PATH, BODY), tmp_path)
    assert caught.value.kind is DOWNLOAD
    assert "SSL_CERT_FILE" in caught.value.hint


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
def test_download_own_certificate_that_the_environment_names_is_trusted(
    secure: Host, certificate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, str(certificate.with_name("cert.pem")))
    assert fetch(secure.put(PATH, BODY), tmp_path) == BODY


def test_download_bundle_that_holds_no_certificates_is_named(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "none.pem"))
    with pytest.raises(LlmrunError, match=r"REQUESTS_CA_BUNDLE names .*none.pem"):
        fetch(host.put(PATH, BODY), tmp_path)


def test_download_redirect_from_https_to_http_is_refused_before_it_is_followed(
    secure: Host, host: Host, certificate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.with_name("cert.pem")))
    secure.redirects[PATH] = {"Location": host.put(PATH, BODY)}
    with pytest.raises(LlmrunError, match="not followed"):
        fetch(secure.url(PATH), tmp_path)
    assert host.requests == []


def test_download_goes_through_the_proxy_of_the_environment(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.put(PATH, BODY)
    monkeypatch.setenv("HTTP_PROXY", host.address)
    assert fetch("http://models.example/x.gguf", tmp_path) == BODY
    assert host.requests[0].headers["host"] == "models.example"


def test_download_no_proxy_is_honoured(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert fetch(host.put(PATH, BODY), tmp_path) == BODY


def test_download_proxy_that_cannot_be_is_an_error_that_names_it(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "nonsense://127.0.0.1:1")
    with pytest.raises(LlmrunError, match="proxy"):
        fetch(host.put(PATH, BODY), tmp_path)


def test_refusal_waits_for_a_date_as_for_seconds() -> None:
    soon = format_datetime(datetime.now(timezone.utc) + timedelta(seconds=20))
    assert 10 < (web._retry_after(soon) or 0) <= 20
    assert web._retry_after("7") == 7.0
    assert web._retry_after("Thu, 01 Jan 1970 00:00:00 GMT") == 0.0
    assert web._retry_after("soon") is None


def test_read_span_gives_these_bytes_and_no_others(host: Host) -> None:
    url = host.put(PATH, BODY)
    assert web.read(url, {}, span=(10, 20)) == BODY[10:20]
    assert host.sent(PATH) == 10


@pytest.mark.parametrize("fault", [Fault(whole=True), Fault(body=BODY[:15], reset=2)])
def test_read_span_that_the_server_does_not_give_is_an_error_or_asked_again(host: Host, fault: Fault) -> None:
    url = host.put(PATH, BODY)
    host.faults[PATH].append(fault)
    if fault.whole:
        with pytest.raises(LlmrunError, match="in parts"):
            web.read(url, {}, span=(10, 20))
    else:
        assert web.read(url, {}, span=(10, 20)) == BODY[10:20]


def test_read_longer_than_the_limit_is_refused(host: Host) -> None:
    with pytest.raises(LlmrunError, match="sends more"):
        web.read(host.put(PATH, BODY), {}, limit=1000)
