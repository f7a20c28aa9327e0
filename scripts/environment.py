"""Makes `.venv` in this checkout and installs the checkout into it (editable), unless that is done.

In:  `--dev` for the tests' packages too; PYTHON, CMAKE_ARGS and pip's own variables.
Out: a ready `.venv` and exit code 0; or exit code 1 after one line that says what is missing and what
mends it. Standard library only: it runs on the system's Python. Knows nothing of llmrun itself.

A finished install leaves a stamp (a hash of pyproject.toml), so that the next run has nothing to do. A
marker lies in `.venv` while an install runs; one left behind means it was cut off: the next run starts
afresh. Two runs at once take turns at a lock that pip's processes hold too.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from causes import cause

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "llmrun-installed"
UNFINISHED = VENV / "llmrun-unfinished"
LOG = ROOT / ".cache" / "install.log"
LOCK = ROOT / ".cache" / "install.lock"
LLAMA = ROOT / "scripts" / "llama.cmake"


class InstallError(Exception):
    """What is missing and what mends it, in one line for the person."""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def doing(log: str) -> str:
    """What pip was at by the end of its output: its latest line, or how far llama.cpp's build is."""
    build = log.rpartition("Building wheel for llama-cpp-python")[2]
    counts = re.findall(r"^\s*\[(\d+)/(\d+)\]", build, re.MULTILINE)  # ninja's
    if counts and "Created wheel" not in build:
        done, steps = map(int, counts[-1])
        return f"building llama.cpp: {100 * done // steps} %"
    lines = (line.strip() for line in reversed(log.split("\n")))
    return next((line for line in lines if line and "WARNING:" not in line), "")


@contextlib.contextmanager
def progress() -> Iterator[None]:
    """While the body runs: time and what pip does; rewritten on a terminal, else every 30 seconds."""
    live = sys.stderr.isatty()
    started = time.monotonic()
    over = threading.Event()

    def tick() -> None:
        while not over.wait(1 if live else 30):
            text = f"  {time.monotonic() - started:.0f} s  {doing(LOG.read_text('utf-8', 'replace'))}"
            text = text[: shutil.get_terminal_size().columns - 1]
            print(f"\r\x1b[K{text}" if live else text, end="" if live else "\n", file=sys.stderr, flush=True)

    ticker = threading.Thread(target=tick, daemon=True)
    ticker.start()
    try:
        yield
    finally:
        over.set()
        ticker.join()
        if live:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def run(*command: str | Path, lock: int) -> None:
    """Runs `command`, its output into the log; InstallError with the known cause where it fails."""
    with LOG.open("ab") as log, progress():
        done = subprocess.run(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[lock], check=False
        )
    if done.returncode == 0:
        return
    output = LOG.read_text("utf-8", "replace")
    reason = cause(output)
    if reason is None:
        said = output.partition("error: subprocess-exited-with-error")[0]  # behind it pip says that it failed
        say("\n".join([line for line in said.splitlines() if line.strip()][-15:]))
        reason = f"the install failed: {' '.join(map(str, command[:4]))} … ended with {done.returncode}"
    raise InstallError(f"{reason}. The whole output is in {LOG}")


@contextlib.contextmanager
def turn() -> Iterator[int]:
    """Waits for other installs into this checkout; the lock's descriptor, which pip must hold as well."""
    with LOCK.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another install runs in this checkout: waiting for it.")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock.fileno()


@dataclass(frozen=True)
class Install:
    """What is to be in `.venv`, or was put there: the stamp's three lines.

    digest  of the checkout's path and pyproject.toml
    dev     whether the tests' packages are in
    flags   CMAKE_ARGS that llama.cpp is built with
    """

    digest: str
    dev: bool
    flags: str

    @classmethod
    def stamped(cls) -> Install | None:
        """The last finished install; None where there is none, or not one of ours."""
        if not (PYTHON.exists() and STAMP.exists()):
            return None
        lines = STAMP.read_text("utf-8").split("\n")
        return cls(lines[0], lines[1] == "dev", lines[2]) if len(lines) == 3 else None

    @classmethod
    def wanted(cls, dev: bool) -> Install:
        """What this run asks for. Flags stay what they were unless they are given."""
        digest = hashlib.sha256(bytes(ROOT) + (ROOT / "pyproject.toml").read_bytes()).hexdigest()
        old = cls.stamped()
        flags = os.environ.get("CMAKE_ARGS", old.flags if old else "")
        if old and old.flags != flags:
            raise InstallError(
                f"llama.cpp in .venv was built with CMAKE_ARGS={old.flags!r}. To build it anew: rm -r {VENV}"
            )
        return cls(digest, dev, flags)

    def is_done(self) -> bool:
        old = self.stamped()
        return old is not None and old.digest == self.digest and old.dev >= self.dev

    def stamp(self) -> None:
        STAMP.write_text(f"{self.digest}\n{'dev' if self.dev else ''}\n{self.flags}", "utf-8")


def check_version() -> None:
    """An existing `.venv` must hold the Python that PYTHON asks for."""
    settings = VENV / "pyvenv.cfg"
    text = settings.read_text("utf-8") if settings.exists() else ""
    found = re.search(r"^version(?:_info)? = (\d+\.\d+)", text, re.MULTILINE)
    wanted = f"{sys.version_info.major}.{sys.version_info.minor}"
    if os.environ.get("PYTHON") and found and found[1] != wanted:
        raise InstallError(
            f".venv holds Python {found[1]}, PYTHON is {wanted}. Remove it first: rm -r {VENV}"
        )


def make_venv(lock: int) -> None:
    """An empty `.venv`, or the one that is there where it is whole; marked as unfinished."""
    if UNFINISHED.exists() or (VENV.exists() and not PYTHON.exists()):
        say("The last install did not finish: .venv is made again.")
        shutil.rmtree(VENV)
    fresh = not VENV.exists()
    VENV.mkdir(exist_ok=True)
    UNFINISHED.touch()
    if fresh:
        run(sys.executable, "-m", "venv", VENV, lock=lock)
        run(PYTHON, "-m", "pip", "install", "pip>=22", lock=lock)  # older ones know no editable pyproject


def install(wanted: Install, lock: int) -> None:
    """This checkout into `.venv`. A failure leaves `.venv` usable: pip takes back what it did."""
    STAMP.unlink(missing_ok=True)
    cache = []
    if wanted.flags:
        os.environ["CMAKE_ARGS"] = wanted.flags
        cache = ["--no-cache-dir"]  # pip keeps the wheels it builds and does not know with which flags
    os.environ.setdefault("SKBUILD_CMAKE_ARGS", f"-DCMAKE_PROJECT_INCLUDE={LLAMA}")
    target = ".[dev]" if wanted.dev else "."
    try:
        # Only with -v a build says how far it is.
        run(PYTHON, "-m", "pip", "install", "-v", *cache, "--editable", target, lock=lock)
    except InstallError:
        UNFINISHED.unlink()
        raise
    wanted.stamp()
    UNFINISHED.unlink()


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    LOCK.parent.mkdir(exist_ok=True)
    try:
        check_version()
        wanted = Install.wanted(dev="--dev" in sys.argv[1:])
        if wanted.is_done():
            return 0
        with turn() as lock:
            if wanted.is_done():
                return 0
            say(
                "Installing into .venv. Without a ready llama.cpp pip builds one: about 3 minutes on 2 cores."
            )
            started = time.monotonic()
            LOG.write_bytes(b"")
            make_venv(lock)
            install(wanted, lock)
            say(f"Installed in {time.monotonic() - started:.0f} s.")
    except InstallError as error:
        say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
