"""The way to the Hub: offline by wish, a proxy, a mirror, certificates."""

from __future__ import annotations

import os
import urllib.request
from collections.abc import Mapping
from urllib.parse import urlsplit

from llmrun.cli.doctor.finding import Finding, ok, warning
from llmrun.errors import LlmrunError
from llmrun.store.network import WHY, is_offline

HUB = "https://huggingface.co"
TIMEOUT = 4.0
_OFFLINE = ("1", "ON", "YES", "TRUE")  # as huggingface_hub reads it


def check_network(env: Mapping[str, str] = os.environ) -> list[Finding]:
    """Whether models can be pulled. Nothing here is broken: those on this machine run without."""
    try:
        if is_offline():
            return [ok("hub", f"not asked, for {WHY}")]
    except LlmrunError:  # which is a finding of its own
        return [ok("hub", "not asked, for the settings cannot be read")]
    if env.get("HF_HUB_OFFLINE", "").upper() in _OFFLINE:
        return [ok("hub", "not asked, as HF_HUB_OFFLINE wishes")]
    endpoint = env.get("HF_ENDPOINT", "").rstrip("/") or HUB
    proxy = urllib.request.getproxies().get(urlsplit(endpoint).scheme)
    if proxy and urllib.request.proxy_bypass(urlsplit(endpoint).hostname or ""):
        proxy = None
    through = [ok("proxy", without_password(proxy))] if proxy else []
    return [*through, reach(endpoint, proxy)]


def reach(endpoint: str, proxy: str | None) -> Finding:
    """A finding on one request, which any answer is good for."""
    import httpx

    try:
        status = httpx.head(endpoint, timeout=TIMEOUT, follow_redirects=False).status_code
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        return unreachable(endpoint, proxy, f"{error}" or type(error).__name__)
    if status == 407:
        mend = "put user and password into it: HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT"
        return warning("hub", f"the proxy {without_password(proxy or '')} wants a password", mend)
    return ok("hub", f"{endpoint} answers")


def unreachable(endpoint: str, proxy: str | None, why: str) -> Finding:
    """A finding on a Hub that does not answer, by what the error says."""
    text = f"{endpoint} cannot be reached ({why})"
    if "CERTIFICATE_VERIFY_FAILED" in why:
        return warning("hub", text, "SSL_CERT_FILE=/path/to/your/network's/ca.pem")
    if proxy:
        return warning("hub", text, f"mend or unset HTTPS_PROXY, which is {without_password(proxy)}")
    mend = "check the network; HTTPS_PROXY names a proxy, HF_ENDPOINT a mirror; HF_HUB_OFFLINE=1: never ask"
    return warning("hub", text, mend)


def without_password(url: str) -> str:
    """`url` as it may be shown to somebody else."""
    if "@" not in url:
        return url
    scheme, separator, rest = url.rpartition("://")
    return f"{scheme}{separator}…@{rest.rpartition('@')[2]}"
