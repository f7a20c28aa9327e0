from __future__ import annotations

import pytest

from llmrun.hosts import base_url, host_port, is_loopback, is_this_machine, parse_host


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost", ("localhost", 11435)),
        ("0.0.0.0:8080", ("0.0.0.0", 8080)),
        (":8080", ("127.0.0.1", 8080)),
        ("[::1]:8080", ("::1", 8080)),
        ("[::1]", ("::1", 11435)),
        ("http://127.0.0.1:8080/", ("127.0.0.1", 8080)),
    ],
)
def test_parse_host_in_every_form_is_host_and_port(text: str, address: tuple[str, int]) -> None:
    assert parse_host(text) == (*address, False)


def test_parse_host_https_url_means_tls() -> None:
    assert parse_host("https://box.example:8443/") == ("box.example", 8443, True)
    assert base_url(*parse_host("https://[::1]:8443")) == "https://[::1]:8443"


@pytest.mark.parametrize("text", ["box:70000", "box:x", "a/b", "user@box", "[::1]x"])
def test_parse_host_of_something_else_raises(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_host(text)


@pytest.mark.parametrize("address", [("127.0.0.1", 80), ("fe80::1", 8080), ("box.example", 0)])
def test_host_port_is_read_back_as_it_was(address: tuple[str, int]) -> None:
    assert parse_host(host_port(*address))[:2] == address


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("0.0.0.0", "http://127.0.0.1:80"),
        ("::", "http://[::1]:80"),
        ("fe80::1", "http://[fe80::1]:80"),
        ("box.example", "http://box.example:80"),
    ],
)
def test_base_url_listening_everywhere_is_reached_on_loopback(host: str, url: str) -> None:
    assert base_url(host, 80) == url


@pytest.mark.parametrize(
    ("host", "loopback", "here"),
    [
        ("127.0.0.1", True, True),
        ("127.9.9.9", True, True),
        ("::1", True, True),
        ("LocalHost", True, True),
        ("0.0.0.0", False, True),
        ("::", False, True),
        ("192.168.1.2", False, False),
        ("10.127.0.1", False, False),
        ("127.example.com", False, False),
    ],
)
def test_hosts_of_this_machine_are_told_by_their_spelling(host: str, loopback: bool, here: bool) -> None:
    assert is_loopback(host) is loopback
    assert is_this_machine(host) is here
