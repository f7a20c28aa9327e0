from __future__ import annotations

import pytest
from starlette.datastructures import Headers

from llmrun.access.gate import Gate
from llmrun.api.guard import SINGLE, Guard
from llmrun.config import Settings
from llmrun.errors import FORBIDDEN, INVALID_REQUEST, UNAUTHORIZED, Kind, LlmrunError
from llmrun.hosts import Address

LOCAL = Settings()
OPEN = Settings(host=Address("0.0.0.0", 11435))
NAMED = Settings(host=Address("box.lan", 11435))
PROXIED = Settings(origins=("https://llm.example.com",))
KEYED = Settings(api_key="s3cret")


def verdict(settings: Settings, path: str = "/v1/models", **headers: str) -> Kind | None:
    """The kind of error the guard raises, None where it lets the request pass."""
    given = {"host": "127.0.0.1:11435", **{name.replace("_", "-"): text for name, text in headers.items()}}
    guard, sent = Guard(settings, Gate(settings.api_key)), Headers(given)
    try:
        guard.check_source(sent)
        guard.admit(path, sent)
    except LlmrunError as error:
        return error.kind
    return None


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost:11435", "LOCALHOST:1", "localhost.", "127.0.0.1", "127.9.9.9:80", "[::1]:11435"],
)
def test_host_that_is_this_machine_passes(host: str) -> None:
    assert verdict(LOCAL, host=host) is None


@pytest.mark.parametrize(
    "host",
    [
        "", "evil.example", "evil.example:11435", "localhost.evil.example", "127.0.0.1.evil.example",
        "127.0.0.1@evil.example", "192.168.1.5:11435", "evil.example/127.0.0.1", "localhost:x", "[::1",
        "localhost, evil.example", "0x7f.1", "localhost#evil.example", "evil.example?localhost", "::1",
    ],
)  # fmt: skip
def test_host_that_is_not_refuses(host: str) -> None:
    assert verdict(LOCAL, host=host) is FORBIDDEN


@pytest.mark.parametrize(
    ("settings", "host", "wanted"),
    [
        (OPEN, "192.168.1.5:11435", None),
        (OPEN, "[fe80::1]:11435", None),
        (OPEN, "evil.example:11435", FORBIDDEN),
        (NAMED, "box.lan:11435", None),
        (NAMED, "BOX.LAN", None),
        (NAMED, "other.lan", FORBIDDEN),
        (PROXIED, "llm.example.com", None),
        (PROXIED, "example.com", FORBIDDEN),
    ],
)
def test_host_follows_the_settings(settings: Settings, host: str, wanted: Kind | None) -> None:
    assert verdict(settings, host=host) is wanted


@pytest.mark.parametrize(
    ("settings", "origin", "wanted"),
    [
        (LOCAL, "http://127.0.0.1:11435", None),
        (LOCAL, "http://localhost:3000", None),
        (LOCAL, "http://[::1]:3000", None),
        (LOCAL, "https://evil.example", FORBIDDEN),
        (LOCAL, "http://localhost.evil.example", FORBIDDEN),
        (LOCAL, "http://localhost@evil.example", FORBIDDEN),
        (LOCAL, "null", FORBIDDEN),
        (LOCAL, "", FORBIDDEN),
        (LOCAL, "chrome-extension://localhost", FORBIDDEN),
        (PROXIED, "https://llm.example.com", None),
        (PROXIED, "http://llm.example.com", FORBIDDEN),
        (Settings(origins=("*",)), "https://evil.example", None),
    ],
)
def test_origin_foreign_ones_are_refused(settings: Settings, origin: str, wanted: Kind | None) -> None:
    assert verdict(settings, origin=origin) is wanted


def test_origin_same_as_host_passes_beyond_loopback() -> None:
    page = "http://192.168.1.5:11435"
    assert verdict(OPEN, host="192.168.1.5:11435", origin=page) is None
    assert verdict(OPEN, host="192.168.1.6:11435", origin=page) is FORBIDDEN


@pytest.mark.parametrize(
    ("headers", "wanted"),
    [
        ({}, UNAUTHORIZED),
        ({"authorization": "Bearer s3cret"}, None),
        ({"authorization": "bearer  s3cret"}, None),
        ({"x_api_key": "s3cret"}, None),
        ({"authorization": "Bearer wrong"}, UNAUTHORIZED),
        ({"authorization": "s3cret"}, UNAUTHORIZED),
        ({"authorization": "Basic s3cret"}, UNAUTHORIZED),
        ({"authorization": "Bearer "}, UNAUTHORIZED),
        ({"authorization": "Bearer schlüssel"}, UNAUTHORIZED),
    ],
)
def test_key_is_wanted_where_one_is_set(headers: dict[str, str], wanted: Kind | None) -> None:
    assert verdict(KEYED, **headers) is wanted


def test_key_is_not_wanted_by_probes() -> None:
    assert verdict(KEYED, "/health") is None
    assert verdict(KEYED, "/metrics") is UNAUTHORIZED


@pytest.mark.parametrize("name", SINGLE)
def test_header_that_decides_and_stands_twice_is_refused(name: str) -> None:
    """A proxy in front may have looked at the other one."""
    raw = [(b"host", b"127.0.0.1"), (name.encode(), b"127.0.0.1"), (name.encode(), b"evil.example")]
    with pytest.raises(LlmrunError, match=f"{name} is there more than once") as refused:
        Guard(LOCAL, Gate(None)).check_source(Headers(raw=raw))
    assert refused.value.kind is INVALID_REQUEST
