"""Why an install failed, told from pip's output, and the command that mends it on this machine.

In:  the text that pip, CMake and the venv module wrote. Out: one line for the person, or None where the
reason is not a known one. Standard library only.
"""

from __future__ import annotations

import os
import re
import shutil
import sys

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


def mend(commands: dict[str, str], otherwise: str) -> str:
    """The command for this machine's package manager, else the words for no known one."""
    for manager, command in commands.items():
        if shutil.which(manager):
            return command if manager == "brew" or os.geteuid() == 0 else f"sudo {command}"
    return otherwise


def cause(log: str) -> str | None:
    """The known reason why an install failed with this output, and its mend; None where unknown."""
    compiler = "xcode-select --install" if sys.platform == "darwin" else mend(COMPILERS, "GCC or Clang")
    known = (
        (
            r"CMAKE_C(XX)?_COMPILER not set|Could not find the compiler|xcrun: error|xcode-select: note",
            f"no C++ compiler was found, and llama.cpp must be built. Install one: {compiler} "
            "(or name yours: CC=clang CXX=clang++; or take a ready wheel: docs/install.md)",
        ),
        (
            r"is not able to compile a simple test program",
            f"the C++ compiler that CMake found compiles nothing, and llama.cpp must be built. Name another "
            f"(CC=clang CXX=clang++), or install one: {compiler}",
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
        (r"No module named '?pip\b", ".venv has no pip. Give it one: .venv/bin/python -m ensurepip"),
        (
            r"llmrun'? requires a different Python",  # pip says so of packages that it passes over too
            "the Python in .venv is none of 3.10 to 3.14. Remove it: rm -r .venv",
        ),
        (r"No space left on device", "the disk is full. Free about 2 GB and run again"),
        (
            r"CERTIFICATE_VERIFY_FAILED",
            "the package index's certificate is not trusted. Set PIP_CERT to your organisation's CA file",
        ),
        (
            r"(?s)(NewConnection|NameResolution|ConnectTimeout|Proxy)Error.*(No matching dist|Max retries)",
            "the package index cannot be reached. Check the network, or set PIP_INDEX_URL or HTTPS_PROXY",
        ),
    )
    return next((words for pattern, words in known if re.search(pattern, log)), None)
