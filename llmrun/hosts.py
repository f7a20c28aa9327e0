"""Where the daemon listens, as people write it and as programs need it: text, (host, port), URL. Pure.

Names are not looked up; what a host means is told from its spelling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address


class Address(NamedTuple):
    """Where a daemon listens; `tls`: it was written as an https:// URL."""

    host: str
    port: int
    tls: bool = False


DEFAULT = Address("127.0.0.1", 11435)


def parse_host(text: str) -> Address:
    """`HOST:PORT`, `HOST`, `:PORT`, `[::1]:PORT`, or an `http://` or `https://` URL of one. ValueError."""
    tls = text.startswith("https://")
    rest = text.removeprefix("https://" if tls else "http://").rstrip("/")
    if rest.startswith("["):
        host, _, port = rest[1:].partition("]")
        port = port.removeprefix(":")
    else:
        host, _, port = rest.partition(":")
    number = int(port) if port else DEFAULT.port
    if not 0 <= number <= 65535 or any(c in host for c in "/ ?#@"):
        raise ValueError(text)
    return Address(host or DEFAULT.host, number, tls)


def host_port(host: str, port: int) -> str:
    """`HOST:PORT`, an IPv6 address in brackets: what `parse_host` reads."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def base_url(host: str, port: int, tls: bool = False) -> str:
    """Where to send requests for a daemon that listens on `host`; on all addresses means loopback too."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)
    return f"{'https' if tls else 'http'}://{host_port(host, port)}"


def address(host: str) -> IPv4Address | IPv6Address | None:
    """The IP address that `host` is (no port, no brackets); None where it is a name."""
    import ipaddress  # not needed where the command line starts

    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Whether `host` can only mean this machine, to itself."""
    ip = address(host)
    return ip.is_loopback if ip else host.lower() == "localhost"


def is_this_machine(host: str) -> bool:
    """Whether a daemon that listens on `host` is on this machine: loopback, or all addresses."""
    ip = address(host)
    return is_loopback(host) or (ip is not None and ip.is_unspecified)
