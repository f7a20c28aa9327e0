from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from llmrun.cli.doctor import network
from llmrun.cli.doctor.finding import Finding
from tests.api.scripted import ScriptedService
from tests.api.server import serving


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address where nothing listens, as long as the test runs."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}"


def only(findings: list[Finding]) -> Finding:
    (finding,) = findings
    return finding


def test_offline_by_wish_asks_nobody(nobody: str) -> None:
    finding = only(network.check_network({"HF_HUB_OFFLINE": "1", "HF_ENDPOINT": nobody}))
    assert (finding.level, finding.text) == ("ok", "not asked, as HF_HUB_OFFLINE wishes")


def test_offline_llmrun_asks_nobody(nobody: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLMRUN_OFFLINE", "1")
    finding = only(network.check_network({"HF_ENDPOINT": nobody}))
    assert (finding.level, finding.text) == ("ok", "not asked, for llmrun is offline")


def test_mirror_that_answers_is_ok() -> None:
    with serving(ScriptedService()) as url:
        assert only(network.check_network({"HF_ENDPOINT": f"{url}/"})) == Finding(
            "hub", "ok", f"{url} answers"
        )


def test_hub_that_does_not_answer_is_a_warning_with_what_to_set(nobody: str) -> None:
    finding = only(network.check_network({"HF_ENDPOINT": nobody}))
    assert finding.level == "warning"
    assert nobody in finding.text
    assert "HTTPS_PROXY" in finding.mend


def test_proxy_is_named_without_its_password(nobody: str, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = nobody.replace("//", "//me:secret@")
    monkeypatch.setenv("http_proxy", proxy)
    named, hub = network.check_network({"HF_ENDPOINT": "http://hub.invalid"})
    assert named.subject == "proxy"
    assert (hub.level, "HTTPS_PROXY" in hub.mend) == ("warning", True)
    assert "secret" not in f"{named}{hub}"


def test_address_that_is_none_is_a_finding() -> None:
    assert only(network.check_network({"HF_ENDPOINT": "nonsense"})).level == "warning"


def test_certificate_of_a_proxy_has_its_own_mend() -> None:
    why = "[SSL: CERTIFICATE_VERIFY_FAILED] self-signed certificate in chain"
    assert "SSL_CERT_FILE" in network.unreachable("https://x", None, why).mend
