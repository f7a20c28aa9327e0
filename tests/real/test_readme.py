"""Every command and program in the README's code blocks, run as it stands.

A block of which some commands are not run has a comment in front, `<!-- not run: COMMAND, …; WHY -->`, which
names how they begin. The port is one of the test's own.
"""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from llmrun.config import DEFAULT_MODEL, Paths
from llmrun.store import Store
from tests.real.daemons import CLEAN, eventually, free_port

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]  # most of the answers end by themselves

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"(?:<!-- not run: ([^;]*);[^>]*-->\n)?^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"\$ cat (\S+)\n((?:(?!\$ ).*\n)*)")


@dataclass
class Desk:
    """A folder to type commands in: a home that has the model, and a file in place."""

    folder: Path
    env: dict[str, str]
    port: int

    def here(self, text: str) -> str:
        """The text for this desk's port."""
        return text.replace("11435", str(self.port))

    def run(self, command: str) -> str:
        """What the command prints; it must end well."""
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", self.here(command)],
            cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def serve(self, command: str) -> None:
        """A command that serves until Ctrl-C."""
        with subprocess.Popen(
            ["bash", "-c", self.here(command)], cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        ) as process:  # fmt: skip
            answers = eventually(self._answers, 60)
            os.killpg(process.pid, signal.SIGINT)
            process.wait(30)
        assert answers, command

    def _answers(self) -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}/health").status_code == 200
        except httpx.TransportError:
            return False


@pytest.fixture(scope="module")
def desk(model_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder, home, programs = (tmp_path_factory.mktemp(name) for name in ("desk", "home", "bin"))
    Store(Paths.find({"LLMRUN_HOME": str(home)})).copy(str(model_path), DEFAULT_MODEL)
    (folder / "file.gguf").symlink_to(model_path)
    for name, words in (("llmrun", f"{sys.executable} -m llmrun"), ("python", sys.executable)):
        (programs / name).write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        (programs / name).chmod(stat.S_IRWXU)
    port = free_port()
    env = {
        **CLEAN,
        "LLMRUN_HOME": str(home),
        "LLMRUN_HOST": f"127.0.0.1:{port}",
        "LLMRUN_CTX": "2048",
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    yield Desk(folder, env, port)
    subprocess.run(
        [programs / "llmrun", "stop", "--daemon"], env=env, capture_output=True, timeout=60, check=False
    )


def blocks(*languages: str) -> list[tuple[tuple[str, ...], str]]:
    """Of each block in one of the languages: how commands begin that are not run, and its text."""
    found = BLOCK.findall((ROOT / "README.md").read_text("utf-8"))
    return [
        (tuple(name.strip() for name in skipped.split(",") if name.strip()), text)
        for skipped, language, text in found
        if language in languages
    ]


def commands() -> list[str]:
    """In order. Those that the README shows with their output begin with a dollar sign there."""
    found = []
    for skipped, text in blocks("sh", "console"):
        lines = FILE.sub("", text).splitlines()
        typed = [line[2:] for line in lines if line.startswith("$ ")] or lines
        found += [line for line in typed if line.strip() and not (skipped and line.startswith(skipped))]
    return found


def test_readme_every_command_does_what_it_is_shown_for(desk: Desk) -> None:
    for _, text in blocks("console"):
        for name, content in FILE.findall(text):
            (desk.folder / name).write_text(desk.here(content))
    typed = commands()
    assert len(typed) > 5
    for command in typed:
        if command.partition("#")[0].strip().endswith("llmrun serve"):
            desk.serve(command)
        else:
            printed = desk.run(command)
            assert printed.strip() or command.startswith(("llmrun chat", "llmrun stop")), command


def test_readme_python_runs(desk: Desk) -> None:
    for _, text in blocks("python"):
        (desk.folder / "example.py").write_text(desk.here(text))
        assert desk.run("python example.py").strip()


def test_readme_says_why_a_command_is_not_run() -> None:
    """A name in a comment that no command begins with would hide nothing, and lie."""
    for skipped, text in blocks("sh", "console"):
        for name in skipped:
            assert re.search(rf"^(\$ )?{re.escape(name)}", text, re.MULTILINE), name
