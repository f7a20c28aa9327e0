from __future__ import annotations

from pathlib import Path

import pytest

from llmrun.api.certificate import Certificate, certificate
from llmrun.config import Settings
from llmrun.errors import CONFIG, LlmrunError
from llmrun.hosts import parse_host
from tests.support.certificates import self_signed


def refused(settings: Settings) -> str:
    with pytest.raises(LlmrunError) as caught:
        certificate(settings)
    assert caught.value.kind is CONFIG
    return str(caught.value)


def test_certificate_is_none_without_one() -> None:
    assert certificate(Settings()) is None


def test_certificate_with_its_key_apart_or_in_the_same_file(tmp_path: Path) -> None:
    cert, key = self_signed(tmp_path)
    assert certificate(Settings(tls_cert=str(cert), tls_key=str(key))) == Certificate(str(cert), str(key))
    both = tmp_path / "both.pem"
    both.write_bytes(key.read_bytes() + cert.read_bytes())
    assert certificate(Settings(tls_cert=str(both))) == Certificate(str(both), None)


def test_certificate_that_cannot_be_used_is_refused_in_words(tmp_path: Path) -> None:
    cert, key = self_signed(tmp_path)
    assert "no certificate" in refused(Settings(tls_key=str(key)))
    assert "no certificate" in refused(Settings(host=parse_host("https://127.0.0.1")))
    assert "missing.pem" in refused(Settings(tls_cert=str(tmp_path / "missing.pem")))
    assert str(cert) in refused(Settings(tls_cert=str(cert)))
