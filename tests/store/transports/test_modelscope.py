"""ModelScope, played by the server."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmrun.errors import DOWNLOAD, NOT_FOUND, LlmrunError
from llmrun.store.progress import Meter
from llmrun.store.reference import ModelScopeRef
from llmrun.store.transports import Offer, modelscope
from tests.store.conftest import sha256
from tests.store.server import Fault, Host

REPO = "Org/Model-GGUF"
API = f"/api/v1/models/{REPO}/repo/files"
BODY = b"GGUF" + b"q4" * 500


@pytest.fixture
def site(host: Host, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.setenv("MODELSCOPE_DOMAIN", host.address.removeprefix("http://"))
    monkeypatch.delenv("MODELSCOPE_API_TOKEN", raising=False)
    host.put_modelscope(REPO, {"README.md": b"hi", "a b/M-Q4_0.gguf": BODY, "M-F16.gguf": BODY + b"x"})
    return host


def offer(quant: str | None = None) -> Offer:
    return modelscope.offer(ModelScopeRef(REPO, quant))


@pytest.mark.usefixtures("site")
def test_offer_names_file_size_and_digest_of_the_quant() -> None:
    chosen = offer("q4_0")
    assert (chosen.source, chosen.name, chosen.vendor) == (f"ms://{REPO}:Q4_0", "Model:Q4_0", "Org")
    assert [(f.name, f.size, f.sha256) for f in chosen.files] == [("M-Q4_0.gguf", len(BODY), sha256(BODY))]


@pytest.mark.usefixtures("site")
def test_offer_what_is_not_there_lists_what_is() -> None:
    with pytest.raises(LlmrunError) as caught:
        offer("Q8_0")
    assert caught.value.kind is NOT_FOUND
    assert "there are: F16, Q4_0" in caught.value.hint


def test_fetch_follows_the_redirect_and_keeps_the_token_to_the_site(
    site: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODELSCOPE_API_TOKEN", "ms-secret")
    chosen = offer("Q4_0")
    (fetched,) = chosen.fetch(chosen.files, tmp_path, Meter(None))
    assert fetched.path.read_bytes() == BODY
    assert site.gets(API)[0].headers["cookie"] == "m_session_id=ms-secret"
    assert "cookie" not in site.gets(f"/oss/{sha256(BODY)}")[0].headers


@pytest.mark.parametrize(
    ("fault", "kind", "what"),
    [
        (Fault(status=404), NOT_FOUND, "HTTP 404"),
        (Fault(status=403), DOWNLOAD, "MODELSCOPE_API_TOKEN"),
        (Fault(body=b"<html>"), DOWNLOAD, "not known"),
        (Fault(body=b'{"Code": 1, "Message": "gone fishing"}'), DOWNLOAD, "gone fishing"),
    ],
)
def test_offer_failure_says_what_to_do(site: Host, fault: Fault, kind: object, what: str) -> None:
    site.faults[API].append(fault)
    with pytest.raises(LlmrunError) as caught:
        offer()
    assert caught.value.kind is kind
    assert what in str(caught.value)


def test_offer_passing_failure_is_tried_again(site: Host) -> None:
    site.faults[API] += [Fault(status=429, headers={"Retry-After": "0"}), Fault(status=502)]
    assert offer("F16").files


def test_offer_endless_listing_is_refused(site: Host) -> None:
    site.faults[API].append(Fault(body=b" " * (17 << 20)))
    with pytest.raises(LlmrunError, match="sends more than"):
        offer()
