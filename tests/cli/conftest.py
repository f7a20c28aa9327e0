"""A home with a tiny model, a daemon that plays a script, and two ways to type a command."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from llmrun import log
from llmrun.config import Paths
from llmrun.store import Store
from tests.api.scripted import MODEL, ScriptedService
from tests.api.server import serving
from tests.support.tiny import write_llama

TIMEOUT = 60


@contextmanager
def _own_log() -> Iterator[None]:
    """`--debug` sends our log to a stderr that is the test's alone."""
    before = log.ROOT.handlers[:], log.ROOT.level, log.ROOT.propagate
    yield
    log.ROOT.handlers[:], log.ROOT.propagate = before[0], before[2]
    log.ROOT.setLevel(before[1])


@dataclass
class Done:
    """What a command wrote, and its exit code."""

    code: int
    out: str
    err: str


@dataclass
class Shell:
    """Types commands. `run` in this process, `spawn` in one of its own, as a shell would."""

    env: dict[str, str]
    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]
    daemon: ScriptedService = field(default_factory=ScriptedService)

    def run(self, *args: str, stdin: str | None = None) -> Done:
        """Stdin is closed unless given."""
        from llmrun.cli.main import main

        stream = None if stdin is None else piped(stdin)
        with self.monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", stream)
            for name, value in {"LLMRUN_OFFLINE": "0", **self.env}.items():
                patch.setenv(name, value)  # the flag sets the variable: it ends with the command
            with _own_log():
                code = main(args)
        if stream:
            stream.close()
        return Done(code, *self.capsys.readouterr())

    def spawn(self, *args: str, **options: Any) -> subprocess.Popen[bytes]:
        """Pipes at stdin, stdout and stderr unless `options` say otherwise."""
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        env = {**os.environ, **self.env}
        return subprocess.Popen([sys.executable, "-m", "llmrun", *args], **{**pipes, "env": env, **options})

    def finish(self, *args: str, typed: bytes = b"", **options: Any) -> Done:
        """As `spawn`, to its end; `typed` is what its stdin holds."""
        with self.spawn(*args, **options) as process:
            out, err = process.communicate(None if "stdin" in options else typed, timeout=TIMEOUT)
        return Done(process.returncode, (out or b"").decode(), (err or b"").decode())


def piped(text: str) -> io.TextIOWrapper:
    """A real pipe that holds `text`."""
    read, write = os.pipe()
    with os.fdopen(write, "wb") as file:
        file.write(text.encode("utf-8", "surrogateescape"))
    return os.fdopen(read, encoding="utf-8", errors="surrogateescape")


@pytest.fixture(scope="session")
def tiny_gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_llama(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty data folder."""
    return tmp_path / "home"


@pytest.fixture
def shell(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """With an empty home and no daemon: one that were started would listen on a free port."""
    return Shell({"LLMRUN_HOME": str(home), "LLMRUN_HOST": "127.0.0.1:0"}, monkeypatch, capsys)


@pytest.fixture
def paths(home: Path) -> Paths:
    return Paths.find({"LLMRUN_HOME": str(home)})


@pytest.fixture
def stocked(shell: Shell, paths: Paths, tiny_gguf: Path) -> Shell:
    """A shell whose home has the model `tiny:1m`."""
    Store(paths).copy(str(tiny_gguf), MODEL)
    return shell


@pytest.fixture
def served(stocked: Shell) -> Iterator[Shell]:
    """And whose daemon is the real HTTP app over `shell.daemon`, which plays a script."""
    with serving(stocked.daemon) as url:
        stocked.env["LLMRUN_HOST"] = url.removeprefix("http://")
        yield stocked
