from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from llmrun.access.gate import Gate
from llmrun.access.keyring import Keyring
from llmrun.access.usage import UsageLog
from llmrun.errors import BUDGET_SPENT, RATE_LIMITED, UNAUTHORIZED, Kind, LlmrunError


@dataclass
class Place:
    """A keyring and a gate over it, whose clocks are set by hand."""

    folder: Path
    now: float = 0.0
    day: float = 0.0

    def __post_init__(self) -> None:
        self.ring = Keyring(self.folder / "keys.json")
        self.usage = UsageLog(self.folder / "usage.json")

    def gate(self, api_key: str | None = None, *, always: bool = False, no_auth: bool = False) -> Gate:
        return Gate(
            api_key,
            self.ring,
            self.usage,
            always=always,
            no_auth=no_auth,
            clock=lambda: self.now,
            calendar=lambda: self.day * 86400,
        )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def verdict(gate: Gate, secret: str) -> str | Kind | None:
    """The name of the key that is let in, None for everything, or why it is refused."""
    try:
        key = gate.admit(secret)
    except LlmrunError as error:
        return error.kind
    return key and key.name


def test_admit_without_any_key_is_open_on_loopback_and_closed_beyond(place: Place) -> None:
    assert verdict(place.gate(), "none") is None
    assert verdict(place.gate(always=True), "none") is UNAUTHORIZED
    assert verdict(place.gate(always=True, no_auth=True), "none") is None


def test_admit_once_there_is_a_key_wants_it(place: Place) -> None:
    gate = place.gate()
    secret = place.ring.create("laptop")
    assert verdict(gate, secret) == "laptop"
    assert verdict(gate, "") is UNAUTHORIZED
    assert verdict(gate, secret[:-1]) is UNAUTHORIZED


def test_admit_last_key_revoked_does_not_open(place: Place) -> None:
    gate = place.gate()
    secret = place.ring.create("laptop")
    place.ring.revoke("laptop")
    assert verdict(gate, secret) is UNAUTHORIZED
    assert verdict(gate, "") is UNAUTHORIZED


def test_admit_settings_key_may_do_everything(place: Place) -> None:
    place.ring.create("laptop")
    gate = place.gate("owner")
    assert verdict(gate, "owner") is None
    assert verdict(gate, "öwner") is UNAUTHORIZED


def test_admit_key_of_the_ring_keeps_its_limits_where_the_settings_hold_it_too(place: Place) -> None:
    secret = place.ring.create("laptop")
    assert verdict(place.gate(secret), secret) == "laptop"


def test_admit_request_that_does_not_count_is_never_too_often(place: Place) -> None:
    gate = place.gate()
    secret = place.ring.create("a", requests_per_minute=1)
    keys = [gate.admit(secret, counts=False) for _ in range(3)]
    assert [key.name for key in keys if key] == ["a"] * 3
    assert verdict(gate, secret) == "a"
    assert verdict(gate, secret) is RATE_LIMITED


def test_admit_too_often_says_when_again_and_refuses_no_other(place: Place) -> None:
    gate = place.gate()
    secret, other = place.ring.create("a", requests_per_minute=2), place.ring.create("b")
    assert [verdict(gate, secret) for _ in range(3)] == ["a", "a", RATE_LIMITED]
    assert verdict(gate, other) == "b"
    with pytest.raises(LlmrunError) as caught:
        gate.admit(secret)
    assert caught.value.details["retry_after"] == pytest.approx(30.0)
    place.now = 30.0
    assert verdict(gate, secret) == "a"
    assert gate.refused["a", "rate_limited"] == 2
    (key, _) = place.ring.entries()
    assert gate.used(key).requests == 3


def test_admit_calendar_set_back_does_not_lengthen_the_wait(place: Place) -> None:
    """A clock jump: the rate is counted on a clock that nobody sets."""
    gate = place.gate()
    place.day = 1000.0
    secret = place.ring.create("a", requests_per_minute=1)
    assert verdict(gate, secret) == "a"
    place.day, place.now = 2.0, 60.0
    assert verdict(gate, secret) == "a"


def test_tokens_left_spent_budget_is_an_error_until_midnight(place: Place) -> None:
    gate = place.gate()
    place.day = 3.25
    place.ring.create("a", tokens_per_day=100)
    (key,) = place.ring.entries()
    assert gate.tokens_left(key) == 100
    gate.count(key, prompt=60, completion=30)
    assert gate.tokens_left(key) == 10
    gate.count(key, completion=15)
    with pytest.raises(LlmrunError) as caught:
        gate.tokens_left(key)
    assert caught.value.kind is BUDGET_SPENT
    assert caught.value.details["retry_after"] == pytest.approx(0.75 * 86400)
    place.day = 4.0
    assert gate.tokens_left(key) == 100


def test_usage_survives_a_restart(place: Place) -> None:
    secret = place.ring.create("a", tokens_per_day=100)
    gate = place.gate()
    key = gate.admit(secret)
    assert key is not None
    gate.count(key, prompt=5, completion=7)
    place.usage.save(place.usage.snapshot())
    again = Place(place.folder).gate()
    used = again.used(key)
    assert (used.requests, used.prompt_tokens, used.completion_tokens) == (1, 5, 7)
    assert again.tokens_left(key) == 88
