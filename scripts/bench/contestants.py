"""What takes part in a comparison: programs that serve one model file, started with the settings under test.

`Llmrun` and `LlamaServer` each have a `name` for the tables and `start`; a started one is a `Process`.
"""

from __future__ import annotations

import http.client
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil
from peer import llama_server, without_broken_amx

import llmrun


class Process:
    """A server over one model file, until `stop`. `model`: the name that its clients send."""

    def __init__(self, command: Sequence[str], port: int, model: str, env: Mapping[str, str]) -> None:
        self._port = port
        self.url = f"http://127.0.0.1:{port}"
        self.model = model
        self.began = time.perf_counter()
        self._process = subprocess.Popen(
            command, env={**os.environ, **env}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._wait(command[0])

    def _wait(self, program: str) -> None:
        while time.perf_counter() - self.began < 120:
            if self._process.poll() is not None:
                raise RuntimeError(f"{program} ended with {self._process.returncode}")
            if self._healthy():
                return
            time.sleep(0.02)
        raise RuntimeError(f"{program} does not answer")

    def _healthy(self) -> bool:
        """Asked with next to no work, for the server has these cores to start on."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=5)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def peak_memory(self) -> int:
        """Bytes that it and its children have had at most, each by itself: resident, summed."""
        return sum(_status(process.pid, "VmHWM") for process in self._all())

    def memory(self) -> int:
        """Bytes that it and its children have now: resident, summed."""
        return sum(_status(process.pid, "VmRSS") for process in self._all())

    def _all(self) -> list[psutil.Process]:
        me = psutil.Process(self._process.pid)
        return [me, *me.children(recursive=True)]

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(60)


def _status(pid: int, name: str) -> int:
    """A line of the kernel's account of a process, in bytes; 0 for one that has just ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except FileNotFoundError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:")), 0)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Llmrun:
    """llmrun's daemon over a model, in a home of its own that lasts as long as this. `env`: its settings."""

    def __init__(self, model: Path, ctx: int, **env: str) -> None:
        self.name = " ".join(["llmrun", *(f"{key}={value}" for key, value in env.items())])
        self._home = tempfile.TemporaryDirectory(prefix="llmrun-bench-")
        self._env = {
            "LLMRUN_HOME": self._home.name,
            "LLMRUN_CTX": str(ctx),
            "LLMRUN_KEEP_ALIVE": "-1",
            "PYTHONDONTWRITEBYTECODE": "",  # an installed llmrun is compiled
            **env,
        }
        package = Path(llmrun.__file__).parent
        subprocess.run([sys.executable, "-m", "compileall", "-q", package], env=self._environment, check=True)
        command = [sys.executable, "-m", "llmrun", "pull", str(model)]
        subprocess.run(command, env=self._environment, check=True, capture_output=True)
        self._model = str(model)

    @property
    def _environment(self) -> dict[str, str]:
        return {**os.environ, **self._env}

    def start(self) -> Process:
        port = free_port()
        env = {**self._env, "LLMRUN_HOST": f"127.0.0.1:{port}"}
        return Process([sys.executable, "-m", "llmrun", "serve"], port, self._model, env)

    def close(self) -> None:
        self._home.cleanup()


class LlamaServer:
    """llama-server over a model, with further arguments of its own."""

    def __init__(self, model: Path, ctx: int, threads: int, *arguments: str) -> None:
        self.name = " ".join(("llama-server", *arguments))
        self._env = without_broken_amx()
        self._command = [
            str(llama_server()),
            "-m",
            str(model),
            "-c",
            str(ctx),
            "-t",
            str(threads),
            *arguments,
        ]

    def start(self) -> Process:
        port = free_port()
        return Process([*self._command, "--host", "127.0.0.1", "--port", str(port)], port, "model", self._env)

    def close(self) -> None:
        """Nothing is kept."""


Contestant = Llmrun | LlamaServer


def named(name: str, model: Path, ctx: int, threads: int) -> Contestant:
    """A contestant by its name in a table: `llmrun LLMRUN_DRAFT=off`, `llama-server -b 256`."""
    program, *words = shlex.split(name)
    if program == "llmrun":
        return Llmrun(model, ctx, **dict(word.split("=", 1) for word in words))
    return LlamaServer(model, ctx, threads, *words)
