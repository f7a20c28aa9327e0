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
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "llmrun-installed"
UNFINISHED = VENV / "llmrun-unfinished"
LOG = ROOT / ".cache" / "install.log"
LOCK = ROOT / ".cache" / "install.lock"

COMPILERS = {
    "apt-get": "apt-get install -y g++",
    "dnf": "dnf install -y gcc-c++",
    "zypper": "zypper install -y gcc-c++",
    "pacman": "pacman -S --needed gcc",
    "apk": "apk add g++ linux-headers",
}
CMAKES = {
    "apt-get": "apt-get install -y cmake",
    "dnf": "dnf install -y cmake",
    "zypper": "zypper install -y cmake",
    "pacman": "pacman -S --needed cmake",
    "apk": "apk add cmake",
    "brew": "brew install cmake",
}
VENVS = {"apt-get": f"apt-get install -y python3.{sys.version_info.minor}-venv"}


class InstallError(Exception):
    """What is missing and what mends it, in one line for the person."""


def mend(commands: dict[str, str], otherwise: str) -> str:
    """The command for this machine's package manager, else the words for no known one."""
    for manager, command in commands.items():
        if shutil.which(manager):
            return command if manager == "brew" or os.geteuid() == 0 else f"sudo {command}"
    return otherwise


def cause(log: str) -> str | None:
    """The known reason why an install failed with this output, and its mend; None where unknown."""
    compiler = (
        "xcode-select --install" if sys.platform == "darwin" else mend(COMPILERS, "install GCC or Clang")
    )
    known = (
        (
            r"CMAKE_C(XX)?_COMPILER not set|Could not find the compiler|xcrun: error|xcode-select: note",
            f"no C++ compiler was found, and llama.cpp must be built. Install one: {compiler} "
            "(or name yours: CC=clang CXX=clang++)",
        ),
        (
            r"CMake \S+ or higher is required|Could not find CMake|Failed building wheel for cmake",
            f"llama.cpp's build needs CMake 3.21 or newer, and the package index has none for this machine. "
            f"Install it: {mend(CMAKES, 'from your system')}",
        ),
        (
            r"Killed signal terminated program",
            "the build of llama.cpp ran out of memory. Build with one process: "
            "CMAKE_BUILD_PARALLEL_LEVEL=1, set before this command",
        ),
        (
            r"ensurepip is not\s+available|No module named '?(venv|ensurepip)",
            f"{sys.executable} cannot make virtual environments. "
            f"Install the missing part: {mend(VENVS, 'the venv and ensurepip modules of this Python')}",
        ),
        (r"No module named '?pip\b", f".venv has no pip. Give it one: {PYTHON} -m ensurepip"),
        (
            r"requires a different Python",
            f"the Python in .venv is none of 3.10 to 3.14. Remove it: rm -r {VENV}",
        ),
        (r"No space left on device", "the disk is full. Free about 2 GB and run again"),
        (
            r"CERTIFICATE_VERIFY_FAILED",
            "the package index's certificate is not trusted. Set PIP_CERT to your organisation's CA file",
        ),
        (
            r"NewConnectionError|NameResolutionError|ConnectTimeoutError|Cannot connect to proxy",
            "the package index cannot be reached. Check the network, or set PIP_INDEX_URL or HTTPS_PROXY",
        ),
    )
    return next((words for pattern, words in known if re.search(pattern, log)), None)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def progress() -> Iterator[None]:
    """While the body runs: time and pip's latest line; rewritten on a terminal, else every 30 seconds."""
    live = sys.stderr.isatty()
    started = time.monotonic()
    over = threading.Event()

    def tick() -> None:
        while not over.wait(1 if live else 30):
            lines = LOG.read_text("utf-8", "replace").split("\n")
            last = next((line.strip() for line in reversed(lines) if line.strip()), "")
            text = f"  {time.monotonic() - started:.0f} s  {last}"
            if live:
                text = "\r\x1b[K" + text[: shutil.get_terminal_size().columns - 1]
            print(text, end="" if live else "\n", file=sys.stderr, flush=True)

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
        say("\n".join(output.splitlines()[-15:]))
        reason = f"the install failed: {' '.join(map(str, command[:4]))} … ended with {done.returncode}"
    raise InstallError(f"{reason}. The whole output is in {LOG}")


def make_venv(lock: int) -> None:
    """An empty `.venv`, or the one that is there where it is whole."""
    if UNFINISHED.exists() or (VENV.exists() and not PYTHON.exists()):
        say("The last install did not finish: making .venv again.")
        shutil.rmtree(VENV)
    fresh = not VENV.exists()
    VENV.mkdir(exist_ok=True)
    UNFINISHED.touch()
    if fresh:
        run(sys.executable, "-m", "venv", VENV, lock=lock)
        run(PYTHON, "-m", "pip", "install", "pip>=22", lock=lock)  # older ones know no editable pyproject


def check_version() -> None:
    """An existing `.venv` must hold the Python that PYTHON asks for."""
    text = (VENV / "pyvenv.cfg").read_text("utf-8") if (VENV / "pyvenv.cfg").exists() else ""
    found = re.search(r"^version(?:_info)? = (\d+\.\d+)", text, re.MULTILINE)
    wanted = f"{sys.version_info.major}.{sys.version_info.minor}"
    if os.environ.get("PYTHON") and found and found[1] != wanted:
        raise InstallError(
            f".venv holds Python {found[1]}, PYTHON is {wanted}. Remove it first: rm -r {VENV}"
        )


def install(dev: bool, stamp: str, lock: int) -> None:
    """This checkout into `.venv`; the stamp is written last."""
    STAMP.unlink(missing_ok=True)
    say("Installing into .venv. Where pip has no ready llama.cpp it builds one: about 4 minutes on 2 cores.")
    # pip keeps the wheels it builds and does not know with which flags: with flags set, build anew.
    flags = ["--no-cache-dir"] if os.environ.get("CMAKE_ARGS") else []
    started = time.monotonic()
    target = f"{ROOT}[dev]" if dev else str(ROOT)
    run(PYTHON, "-m", "pip", "install", *flags, "--editable", target, lock=lock)
    STAMP.write_text(stamp, "utf-8")
    say(f"Installed in {time.monotonic() - started:.0f} s.")


def main() -> int:
    dev = "--dev" in sys.argv[1:]
    stamp = hashlib.sha256(bytes(ROOT) + (ROOT / "pyproject.toml").read_bytes()).hexdigest()
    wanted = f"{stamp} dev" if dev else stamp

    def ready() -> bool:
        return PYTHON.exists() and STAMP.exists() and STAMP.read_text("utf-8").startswith(wanted)

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    LOCK.parent.mkdir(exist_ok=True)
    try:
        check_version()
        if ready():
            return 0
        with LOCK.open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("Another install runs in this checkout: waiting for it.")
                fcntl.flock(lock, fcntl.LOCK_EX)
            if ready():
                return 0
            LOG.write_bytes(b"")
            make_venv(lock.fileno())
            try:
                install(dev, wanted, lock.fileno())
            except InstallError:
                UNFINISHED.unlink()
                raise
            UNFINISHED.unlink()
    except InstallError as error:
        say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
