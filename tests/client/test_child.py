"""With real `llmrun serve` processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from llmrun.client.child import ServeChild, environment
from llmrun.errors import DAEMON_UNREACHABLE, LlmrunError


def serve(tmp_path: Path, **env: str) -> ServeChild:
    log = (tmp_path / "log").open("a+b")
    return ServeChild.spawn([], {**os.environ, "LLMRUN_HOME": str(tmp_path), **env}, log)


@pytest.fixture
def child(tmp_path: Path) -> Iterator[ServeChild]:
    child = serve(tmp_path, LLMRUN_HOST="127.0.0.1:0")
    yield child
    child.end()
    child.log.close()


def test_wait_until_child_cannot_start_says_in_its_words_why(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("error: an older one\n")
    child = serve(tmp_path, LLMRUN_HOST="nonsense:port")
    with (
        child.log,
        pytest.raises(LlmrunError, match=r"cannot start: LLMRUN_HOST is 'nonsense:port'") as caught,
    ):
        child.wait_until(lambda: False)
    assert caught.value.kind is DAEMON_UNREACHABLE


def test_wait_until_child_is_killed_names_the_signal(child: ServeChild) -> None:
    def kill() -> bool:
        child.process.send_signal(signal.SIGKILL)
        return False

    with pytest.raises(LlmrunError, match="signal 9"):
        child.wait_until(kill)


def test_wait_until_never_ready_ends_the_child(child: ServeChild) -> None:
    with pytest.raises(LlmrunError, match="did not answer within"):
        child.wait_until(lambda: False, timeout=0.2)
    assert child.process.returncode is not None


def test_wait_until_reports_only_this_childs_lines(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("from before\n")
    child = serve(tmp_path, LLMRUN_HOST="127.0.0.1:0")

    def listening() -> bool:
        return any("listening" in line for line in child.last_lines())

    with child.log:
        child.wait_until(listening)
        assert "from before" not in child.last_lines()
        child.end()
        child.end()


def test_environment_relative_home_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert environment({"LLMRUN_HOME": "here"})["LLMRUN_HOME"] == str(tmp_path / "here")


def test_environment_keeps_a_python_path_of_ones_own() -> None:
    assert environment({"PYTHONPATH": "/mine"})["PYTHONPATH"].split(os.pathsep)[-1] == "/mine"
