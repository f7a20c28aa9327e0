from __future__ import annotations

import threading
from pathlib import Path

import pytest

from llmrun.access.key import find
from llmrun.access.keyring import Keyring
from llmrun.errors import CONFIG, CONFLICT, NOT_FOUND, USAGE, LlmrunError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config" / "keys.json"


def test_create_is_noticed_by_another_reader_and_holds_no_secret(path: Path) -> None:
    reader = Keyring(path)
    assert reader.entries() == ()
    secret = Keyring(path).create("laptop", models=("tiny:*",), requests_per_minute=3, tokens_per_day=9)
    key = find(reader.entries(), secret)
    assert key is not None
    assert (key.name, key.models, key.requests_per_minute, key.tokens_per_day) == (
        "laptop",
        ("tiny:*",),
        3,
        9,
    )
    assert secret.encode() not in path.read_bytes()
    assert secret.removeprefix("llmrun_").encode() not in path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o600


def test_revoke_is_noticed_and_keeps_the_record(path: Path) -> None:
    ring = Keyring(path, clock=lambda: 5.0)
    secret = ring.create("laptop")
    reader = Keyring(path)
    assert find(reader.entries(), secret)
    ring.revoke("laptop")
    assert find(reader.entries(), secret) is None
    assert [key.revoked for key in reader.entries()] == [5.0]


def test_name_given_again_is_another_key(path: Path) -> None:
    ring = Keyring(path)
    first = ring.create("laptop")
    (before,) = ring.entries()
    ring.revoke("laptop")
    second = ring.create("laptop")
    (after,) = ring.entries()
    assert before.id != after.id
    assert find(ring.entries(), first) is None
    assert find(ring.entries(), second) == after


def test_wrong_names_are_refused_in_words(path: Path) -> None:
    ring = Keyring(path)
    ring.create("laptop")
    for call, kind in (
        (lambda: ring.create("laptop"), CONFLICT),
        (lambda: ring.create("a b"), USAGE),
        (lambda: ring.revoke("phone"), NOT_FOUND),
    ):
        with pytest.raises(LlmrunError) as caught:
            call()
        assert caught.value.kind is kind


def test_keys_of_a_damaged_file_is_an_error_and_never_no_keys(path: Path) -> None:
    ring = Keyring(path)
    ring.create("laptop")
    path.write_bytes(path.read_bytes()[:-9])
    for _ in range(2):
        with pytest.raises(LlmrunError) as caught:
            ring.entries()
        assert caught.value.kind is CONFIG


def test_create_by_many_at_once_keeps_all(path: Path) -> None:
    threads = [threading.Thread(target=Keyring(path).create, args=(f"key{i}",)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {key.name for key in Keyring(path).entries()} == {f"key{i}" for i in range(8)}
