"""Who may talk to the daemon: decided from a request's headers alone, before anything else.

A page of any site can make its reader's browser send requests to 127.0.0.1. Three checks stop it:
`Host` must be a name of ours (a name that an attacker's DNS points here is not), a foreign `Origin`
is refused, and bodies must be JSON (`llmrun.api.body`). Whose key it is says `llmrun.access.gate`.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers

from llmrun.access.gate import Gate
from llmrun.access.key import ApiKey
from llmrun.config import Settings
from llmrun.errors import FORBIDDEN, INVALID_REQUEST, LlmrunError
from llmrun.hosts import address, is_loopback

OPEN_PATHS = frozenset({"/", "/health", "/v1/health", "/docs", "/openapi.json"})
"""Wanted by browsers and probes, and the same for everyone: no key needed."""
OPEN_FOLDER = "/web/"
"""The chat page's files, which are no secret either; the page asks for the key."""
SINGLE = ("host", "origin", "authorization", "x-api-key")
"""What is decided by. Where one stands twice, another program may have read the other."""
WATCHING = frozenset({"/llmrun/ps"})
"""Asked for each second by a page that shows the engine: it must not use up what a key may ask."""


def _host_of(authority: str) -> str | None:
    """The host in `HOST[:PORT]`, lower case, without brackets; None where it is malformed."""
    try:
        parts = urlsplit(f"//{authority}")
        _ = parts.port
    except ValueError:
        return None
    if parts.netloc != authority or "@" in authority or not parts.hostname:
        return None
    return parts.hostname.removesuffix(".")


class Guard:
    """The checks for one daemon."""

    def __init__(self, settings: Settings, gate: Gate) -> None:
        host = settings.host[0].lower()
        self._gate = gate
        self._any_origin = "*" in settings.origins
        self._origins = frozenset(settings.origins)
        self._names = {host, *(urlsplit(origin).hostname for origin in settings.origins)}
        self._beyond_loopback = not is_loopback(host)

    def check_source(self, headers: Headers) -> None:
        """LlmrunError unless the request comes from where requests may come from, whoever sends it."""
        for name in SINGLE:
            if len(headers.getlist(name)) > 1:
                raise LlmrunError(
                    INVALID_REQUEST, f"the header {name} is there more than once", hint="send it once"
                )
        self._check_host(headers.get("host", ""))
        origin = headers.get("origin")
        if origin is not None and not self.allows_origin(origin, headers.get("host", "")):
            raise LlmrunError(
                FORBIDDEN,
                f"the web origin {origin[:100]!r} is not allowed",
                hint="add it to LLMRUN_ORIGINS if you trust it",
            )

    def admit(self, path: str, headers: Headers) -> ApiKey | None:
        """The key that a request carries; None where it may do everything, or the path is open to all.
        LlmrunError where one is wanted that is not there."""
        if path in OPEN_PATHS or path.startswith(OPEN_FOLDER):
            return None
        return self._gate.admit(_secret(headers), counts=path not in WATCHING)

    def allows_origin(self, origin: str, host: str) -> bool:
        """Whether pages of `origin` may send requests: our own, this machine's, and the settings'."""
        if self._any_origin or origin in self._origins:
            return True
        scheme, _, authority = origin.partition("://")
        if scheme not in ("http", "https"):
            return False
        return authority.lower() == host.lower() or is_loopback(_host_of(authority) or "")

    def _check_host(self, authority: str) -> None:
        host = _host_of(authority)
        if host is not None:
            if is_loopback(host) or host in self._names:
                return
            if self._beyond_loopback and address(host):
                return
        raise LlmrunError(
            FORBIDDEN,
            f"the Host header {authority[:100]!r} does not name this daemon",
            hint="use its address, or add http://NAME to LLMRUN_ORIGINS",
        )


def _secret(headers: Headers) -> str:
    """The key that a request carries, as OpenAI's clients or as Anthropic's send it; "" for none."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        given = headers.get("x-api-key", "")
    return given.strip()
