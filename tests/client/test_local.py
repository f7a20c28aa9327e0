"""With real private daemons; no model is loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from llmrun.client.client import Client
from llmrun.client.local import private_daemon
from llmrun.config import Paths
from llmrun.daemon.lock import find_daemon
from llmrun.errors import DAEMON_UNREACHABLE, UNAUTHORIZED, LlmrunError
from tests.real.daemons import eventually, has_ended


def test_private_daemon_is_nobody_elses_and_gone_at_the_end(tmp_path: Path) -> None:
    before = {child.pid for child in psutil.Process().children()}
    with private_daemon({**os.environ, "LLMRUN_HOME": str(tmp_path)}) as client:
        assert client.loaded() == []
        (child,) = [child for child in psutil.Process().children() if child.pid not in before]
        port = int(client.url.rpartition(":")[2])
        with Client("127.0.0.1", port) as stranger, pytest.raises(LlmrunError) as caught:
            stranger.loaded()
        assert caught.value.kind is UNAUTHORIZED
        assert find_daemon(Paths.find({"LLMRUN_HOME": str(tmp_path)})) is None
    assert not child.is_running()


def test_private_daemon_that_cannot_start_says_why(tmp_path: Path) -> None:
    env = {**os.environ, "LLMRUN_HOME": str(tmp_path), "LLMRUN_PARALLEL": "many"}
    with pytest.raises(LlmrunError, match="LLMRUN_PARALLEL is 'many'") as caught, private_daemon(env):
        pass
    assert caught.value.kind is DAEMON_UNREACHABLE


def test_private_daemon_ends_when_its_command_is_killed(tmp_path: Path) -> None:
    program = (
        "from llmrun.client.local import private_daemon\n"
        "with private_daemon():\n"
        "    print('ready', flush=True)\n"
        "    input()\n"
    )
    env = {**os.environ, "LLMRUN_HOME": str(tmp_path)}
    command = subprocess.Popen(
        [sys.executable, "-c", program], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with command:
        assert command.stdout is not None
        assert command.stdout.readline() == b"ready\n"
        (child,) = psutil.Process(command.pid).children()
        command.kill()
        assert eventually(lambda: has_ended(child), 20)
