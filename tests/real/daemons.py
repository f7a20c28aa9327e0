"""A real `llmrun serve` and real `llmrun` commands against it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import httpx
import psutil

COMMAND = [sys.executable, "-m", "llmrun"]
# What the user of the tests has set must not decide how they end.
CLEAN = {key: value for key, value in os.environ.items() if not key.startswith("LLMRUN_")}


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def eventually(holds: Callable[[], bool], seconds: float) -> bool:
    """Whether `holds` becomes true in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.02)
    return holds()


def has_ended(process: psutil.Process) -> bool:
    """Whether a process runs no more; whoever inherited it need not have reaped it."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def end_inherited(pid: int) -> None:
    """End a process that is no child of this one, and see that it has ended. It is not waited for until it is
    reaped: who does that may take seconds."""
    process = psutil.Process(pid)
    process.terminate()
    assert eventually(lambda: has_ended(process), 20)


def linked_home(home: Path, place: Path) -> Path:
    """A home of its own at `place` with the models of `home`. Their files are the same ones: not to be
    written."""
    shutil.copytree(home / "models", place / "models", copy_function=_linked)
    return place


def _linked(source: str, destination: str) -> str:
    Path(destination).hardlink_to(source)
    return destination


class Daemon:
    """`llmrun serve` on a free port; `close` ends it and checks that nothing is left."""

    def __init__(self, home: Path, *, stderr: IO[bytes] | None = None, **settings: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.env = {
            **CLEAN,
            "LLMRUN_HOME": str(home),
            "LLMRUN_HOST": f"127.0.0.1:{self.port}",
            "LLMRUN_CACHE_DISK": "0",  # what an earlier test computed must not decide how one ends
            **settings,
        }
        self.http = httpx.Client(base_url=self.url, timeout=100)
        # A file, not a pipe: a pipe that nobody reads is full one day, and holds up the daemon.
        with tempfile.TemporaryFile() as log:
            self.process = subprocess.Popen(
                [*COMMAND, "serve"], env=self.env, stdout=subprocess.DEVNULL, stderr=stderr or log
            )
            if not eventually(self._answers, 30):
                self.process.kill()
                self.process.wait()
                log.seek(0)
                raise AssertionError(log.read().decode("utf-8", "replace"))

    def _answers(self) -> bool:
        try:
            return self.http.get("/health").status_code == 200
        except httpx.TransportError:
            return False

    def run(self, *args: str, stdin: bytes | None = b"", **env: str) -> subprocess.CompletedProcess[bytes]:
        """An `llmrun` command to its end."""
        return subprocess.run(
            [*COMMAND, *args], env={**self.env, **env}, input=stdin, capture_output=True, timeout=100
        )

    def loaded(self) -> list[dict[str, Any]]:
        """The models in memory, as `llmrun ps --json` would list them."""
        found: list[dict[str, Any]] = self.http.get("/llmrun/ps").json()
        return found

    def runner(self) -> psutil.Process:
        """The only runner's process."""
        (loaded,) = self.loaded()
        return psutil.Process(loaded["pid"])

    def is_at_rest(self) -> bool:
        """No request is running, waiting or held, by the runners' own counts."""
        return all(
            not model["in_flight"] and model["stats"] and not model["stats"]["running"]
            for model in self.loaded()
        )

    def close(self) -> None:
        children = psutil.Process(self.process.pid).children(recursive=True)
        self.process.terminate()
        self.process.communicate(timeout=20)
        self.http.close()
        assert not psutil.wait_procs(children, timeout=5)[1], "a runner outlived its daemon"
