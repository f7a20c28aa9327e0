from __future__ import annotations

import errno
import threading
from pathlib import Path

import pytest

from llmrun.errors import DISK, LlmrunError
from llmrun.store.disk import human, locked, require_space, sha256_of, write_atomic, writing


def test_write_atomic_failure_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.json"
    write_atomic(path, b"old")

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="No space"):
        write_atomic(path, b"new")
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"old"]


def test_require_space_more_than_free_says_both_sizes(tmp_path: Path) -> None:
    require_space(tmp_path, 1)
    with pytest.raises(LlmrunError) as caught:
        require_space(tmp_path, 10**18)
    assert caught.value.kind is DISK
    assert "1000000.0 TB are needed" in caught.value.message
    assert "are free" in caught.value.message


def test_locked_second_waits_and_says_so_until_the_first_is_done(tmp_path: Path) -> None:
    order: list[str] = []
    waiting = threading.Event()

    def second() -> None:
        with locked(tmp_path / "l" / "a.lock", waiting.set):
            order.append("second")

    with locked(tmp_path / "l" / "a.lock", lambda: order.append("never")):
        thread = threading.Thread(target=second)
        thread.start()
        assert waiting.wait(10)
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]


@pytest.mark.parametrize(
    ("number", "what"), [(errno.ENOSPC, "is full"), (errno.EROFS, "cannot be used"), (errno.EIO, "broken")]
)
def test_writing_operating_system_errors_become_words(tmp_path: Path, number: int, what: str) -> None:
    with pytest.raises(LlmrunError, match=what) as caught, writing(tmp_path):
        raise OSError(number, "broken")
    assert caught.value.kind is DISK
    assert caught.value.hint


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (98_362_432, "98.4 MB"),
        (5_027_783_488, "5.0 GB"),
        (2e15, "2000.0 TB"),
    ],
)
def test_human_is_short_and_decimal(size: float, text: str) -> None:
    assert human(size) == text


def test_sha256_of_reports_every_block(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"a" * ((1 << 20) + 5))
    seen: list[int] = []
    assert len(sha256_of(path, seen.append)) == 64
    assert seen == [1 << 20, (1 << 20) + 5]
