"""Certificates for tests, made by openssl."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def self_signed(folder: Path, name: str = "IP:127.0.0.1") -> tuple[Path, Path]:
    """A certificate for `name` that signs itself, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    cert, key = folder / "cert.pem", folder / "key.pem"
    made = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    said = ["-keyout", str(key), "-out", str(cert), "-days", "2", "-subj", "/CN=llmrun"]
    subprocess.run([*made, *said, "-addext", f"subjectAltName={name}"], check=True, capture_output=True)
    return cert, key
