"""The lock between real processes: held by a child, looked at and fought over from here."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from llmrun.config import Paths
from llmrun.daemon.lock import DaemonAddress, DaemonLock, find_daemon
from llmrun.errors import CONFLICT, DISK, LlmrunError

ADDRESS = DaemonAddress(pid=4711, host="127.0.0.1", port=11435, version="1.2.3", started=1700000000.5)

HOLDER = """
import sys
sys.path.insert(0, sys.argv[2])
from llmrun.config import Paths
from llmrun.daemon.lock import DaemonAddress, DaemonLock
lock = DaemonLock(Paths.find({"LLMRUN_HOME": sys.argv[1]}))
lock.acquire()
if sys.argv[3] == "publish":
    lock.publish(DaemonAddress(pid=4711, host="127.0.0.1", port=11435, version="1.2.3", started=1700000000.5))
print("held", flush=True)
sys.stdin.read()
lock.release()
"""


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths.find({"LLMRUN_HOME": str(tmp_path / "ho me 家")})


@contextmanager
def other_daemon(paths: Paths, publish: str = "publish") -> Iterator[subprocess.Popen[bytes]]:
    arguments = [str(paths.state.parent), str(Path(__file__).parents[2]), publish]
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as daemon:
        assert daemon.stdin is not None
        assert daemon.stdout is not None
        try:
            assert daemon.stdout.readline() == b"held\n"
            yield daemon
        finally:
            daemon.stdin.close()
            daemon.wait(10)


def test_find_without_a_daemon_is_none_and_creates_nothing(paths: Paths) -> None:
    assert find_daemon(paths) is None
    assert not paths.state.exists()


def test_find_tells_the_running_daemon_again_and_again(paths: Paths) -> None:
    with other_daemon(paths):
        assert find_daemon(paths) == ADDRESS
        assert find_daemon(paths) == ADDRESS
    assert find_daemon(paths) is None


def test_find_before_the_daemon_listens_is_none(paths: Paths) -> None:
    with other_daemon(paths, publish="no"):
        assert find_daemon(paths) is None


def test_find_after_a_kill_is_none_and_cleans_up(paths: Paths) -> None:
    with other_daemon(paths) as daemon:
        daemon.kill()
        daemon.wait(10)
        assert (paths.state / "daemon.json").exists()
        assert find_daemon(paths) is None
        assert not (paths.state / "daemon.json").exists()


@pytest.mark.parametrize("content", [b"", b"{", b"[1, 2]", b'{"pid": "x"}', b"\xff\xfe", b"\x00" * 100])
def test_find_with_a_damaged_address_is_none(paths: Paths, content: bytes) -> None:
    paths.state.mkdir(parents=True)
    (paths.state / "daemon.json").write_bytes(content)
    assert find_daemon(paths) is None


def test_acquire_beside_another_daemon_names_it(paths: Paths) -> None:
    with other_daemon(paths):
        with pytest.raises(LlmrunError) as caught:
            DaemonLock(paths).acquire()
        assert caught.value.kind is CONFLICT
        assert "pid 4711, http://127.0.0.1:11435" in caught.value.message
        assert caught.value.details == {"pid": 4711, "url": "http://127.0.0.1:11435"}
        assert find_daemon(paths) == ADDRESS


def test_acquire_beside_a_daemon_that_starts_says_so(paths: Paths) -> None:
    with other_daemon(paths, publish="no"):
        with pytest.raises(LlmrunError) as caught:
            DaemonLock(paths).acquire()
        assert caught.value.kind is CONFLICT
        assert "starting" in caught.value.message


def test_acquire_after_a_killed_daemon_clears_its_address(paths: Paths) -> None:
    with other_daemon(paths) as daemon:
        daemon.kill()
        daemon.wait(10)
        lock = DaemonLock(paths)
        lock.acquire()
        assert not (paths.state / "daemon.json").exists()
        lock.release()


def test_release_removes_the_address_and_frees_the_lock(paths: Paths) -> None:
    lock = DaemonLock(paths)
    lock.acquire()
    lock.publish(ADDRESS)
    assert (paths.state / "daemon.json").exists()
    lock.release()
    lock.release()
    assert [path.name for path in paths.state.iterdir()] == ["daemon.lock"]
    with other_daemon(paths):
        pass


def test_acquire_where_nothing_can_be_written_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LlmrunError) as caught:
        DaemonLock(Paths.find({"LLMRUN_HOME": str(tmp_path / "file")})).acquire()
    assert caught.value.kind is DISK


def test_url_of_an_ipv6_address_has_brackets() -> None:
    assert DaemonAddress(pid=1, host="::1", port=80, version="", started=0).url == "http://[::1]:80"
