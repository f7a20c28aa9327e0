"""Found through real locks and a real HTTP app; started as real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from llmrun import __version__
from llmrun.client.connection import LOG_LIMIT, Connector, log_file
from llmrun.config import Paths, load_settings
from llmrun.daemon.lock import DaemonAddress, DaemonLock, find_daemon
from llmrun.errors import DAEMON_UNREACHABLE, LlmrunError
from tests.api.scripted import ScriptedService
from tests.api.server import serving
from tests.real.daemons import end_inherited


@dataclass
class Told:
    """What a person would have read."""

    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def address() -> Iterator[tuple[str, int]]:
    with serving(ScriptedService()) as url:
        parts = urlsplit(url)
        yield parts.hostname or "", parts.port or 0


def connector(home: Path, told: Told, **env: str) -> Connector:
    paths = Paths.find({"LLMRUN_HOME": str(home)})
    return Connector(paths, load_settings(paths, env), told.notes.append, told.warnings.append, env)


def lock_at(home: Path, address: tuple[str, int], version: str = __version__) -> DaemonLock:
    """This process as the daemon of `home`, listening at `address`."""
    lock = DaemonLock(Paths.find({"LLMRUN_HOME": str(home)}))
    lock.acquire()
    host, port = address
    lock.publish(DaemonAddress(pid=os.getpid(), host=host, port=port, version=version, started=0.0))
    return lock


def test_find_nothing_runs_returns_none(tmp_path: Path, told: Told) -> None:
    assert connector(tmp_path, told).find() is None


def test_find_named_address_is_where_it_looks(tmp_path: Path, told: Told, address: tuple[str, int]) -> None:
    where = connector(tmp_path, told, LLMRUN_HOST=f"{address[0]}:{address[1]}")
    client = where.find()
    assert client is not None
    assert client.url == f"http://{address[0]}:{address[1]}"
    client.close()


def test_connect_without_a_name_goes_where_the_lock_says(
    tmp_path: Path, told: Told, address: tuple[str, int]
) -> None:
    lock = lock_at(tmp_path, address)
    with connector(tmp_path, told).connect() as client:
        assert client.url.endswith(f":{address[1]}")
    assert told == Told()
    lock.release()


def test_connect_daemon_of_another_version_warns_with_the_mend(
    tmp_path: Path, told: Told, address: tuple[str, int]
) -> None:
    lock = lock_at(tmp_path, address, version="0.0.1")
    connector(tmp_path, told).connect().close()
    (warning,) = told.warnings
    assert "0.0.1" in warning
    assert "llmrun stop --daemon" in warning
    lock.release()


def test_connect_elsewhere_is_not_started_here(tmp_path: Path, told: Told) -> None:
    where = connector(tmp_path, told, LLMRUN_HOST="host.invalid:9")
    assert not where.shares_store
    with pytest.raises(LlmrunError, match=r"host\.invalid:9") as caught:
        where.connect()
    assert caught.value.kind is DAEMON_UNREACHABLE
    assert told.notes == []


def ps(home: Path) -> subprocess.Popen[str]:
    """A command that needs a daemon, on any free port."""
    env = {**os.environ, "LLMRUN_HOME": str(home), "LLMRUN_HOST": "127.0.0.1:0"}
    command = [sys.executable, "-m", "llmrun", "ps", "--json"]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A data folder whose daemon, if there is one at the end, is ended."""
    yield tmp_path
    if daemon := find_daemon(Paths.find({"LLMRUN_HOME": str(tmp_path)})):
        end_inherited(daemon.pid)


def test_commands_that_start_at_once_end_up_with_one_daemon(home: Path) -> None:
    commands = [ps(home) for _ in range(3)]
    for command in commands:
        out, err = command.communicate(timeout=60)
        assert (command.returncode, out) == (0, "[]\n"), err
    log = log_file(Paths.find({"LLMRUN_HOME": str(home)})).read_text()
    assert log.count("listening on") == 1
    assert "error" not in log


def test_daemon_that_was_killed_is_replaced_by_the_next_command(home: Path) -> None:
    paths = Paths.find({"LLMRUN_HOME": str(home)})
    assert ps(home).communicate(timeout=60)[0] == "[]\n"
    first = find_daemon(paths)
    assert first is not None
    psutil.Process(first.pid).kill()
    assert ps(home).communicate(timeout=60)[0] == "[]\n"
    second = find_daemon(paths)
    assert second is not None
    assert second.pid != first.pid


def test_log_that_grew_long_is_put_aside(home: Path) -> None:
    log = log_file(Paths.find({"LLMRUN_HOME": str(home)}))
    log.parent.mkdir(parents=True)
    with log.open("wb") as file:
        file.truncate(LOG_LIMIT + 1)
    assert ps(home).communicate(timeout=60)[0] == "[]\n"
    assert log.with_suffix(".log.1").stat().st_size == LOG_LIMIT + 1
    assert log.stat().st_size < 10_000
