"""The certificate that the daemon serves HTTPS with: looked at before anything is started."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

from llmrun.config import Settings
from llmrun.errors import CONFIG, LlmrunError


@dataclass(frozen=True)
class Certificate:
    """Paths of PEM files; `key` is None where the certificate's file holds it too."""

    cert: str
    key: str | None


def certificate(settings: Settings) -> Certificate | None:
    """The settings' certificate, which can be used; None: plain HTTP. LlmrunError CONFIG."""
    cert, key = settings.tls_cert, settings.tls_key
    if cert is None:
        if key is not None or settings.host.tls:
            what = "a private key" if key is not None else "an https:// address"
            raise LlmrunError(
                CONFIG, f"there is {what} but no certificate", hint="set --tls-cert (LLMRUN_TLS_CERT)"
            )
        return None
    try:
        # An empty password: a key that wants one must not make the daemon wait at a prompt.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password="")
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        files = cert if key is None else f"{cert} with the key {key}"
        raise LlmrunError(
            CONFIG,
            f"the certificate {files} cannot be used: {error}",
            hint="both are PEM files, the key without a password",
        ) from None
    return Certificate(cert, key)
