from __future__ import annotations

import pytest

from llmrun.access.key import PREFIX, ApiKey, digest, find, is_name, new_secret


def key(secret: str, *, models: tuple[str, ...] = (), revoked: float | None = None) -> ApiKey:
    return ApiKey(id="1", name="k", sha256=digest(secret), created=0.0, models=models, revoked=revoked)


def test_new_secret_is_random_and_recognisable() -> None:
    made = {new_secret() for _ in range(50)}
    assert len(made) == 50
    assert all(each.startswith(PREFIX) and len(each) >= len(PREFIX) + 43 for each in made)


def test_find_knows_the_secret_alone() -> None:
    keys = [key("a"), key("b")]
    assert find(keys, "b") is keys[1]
    assert find(keys, "c") is None
    assert find(keys, digest("b")) is None


def test_find_revoked_key_is_none() -> None:
    assert find([key("a", revoked=1.0)], "a") is None


@pytest.mark.parametrize(
    ("patterns", "names", "allowed"),
    [
        ((), ("any:1",), True),
        (("tiny:1m",), ("tiny:1m",), True),
        (("tiny:1m",), ("tiny:2m",), False),
        (("tiny:*",), ("tiny:2m",), True),
        (("tiny:*",), ("mytiny:2m",), False),
        (("tiny",), ("tiny:1m", "tiny"), True),
        (("TINY:1m",), ("tiny:1m",), False),
    ],
)
def test_allows_patterns_of_models(patterns: tuple[str, ...], names: tuple[str, ...], allowed: bool) -> None:
    assert key("a", models=patterns).allows(*names) is allowed


@pytest.mark.parametrize(
    ("name", "good"),
    [("laptop", True), ("a.b-c_9", True), ("", False), ("-x", False), ('a"}', False), ("a" * 65, False)],
)
def test_is_name_keeps_to_what_tables_and_metrics_can_show(name: str, good: bool) -> None:
    assert is_name(name) is good
