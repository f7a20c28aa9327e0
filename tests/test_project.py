"""Facts about the project that are written in more than one place agree."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import zipfile
from datetime import date
from pathlib import Path

import pytest

import llmrun

ROOT = Path(__file__).resolve().parent.parent

spec = importlib.util.spec_from_file_location("causes", ROOT / "scripts" / "causes.py")
assert spec is not None
assert spec.loader is not None
causes = importlib.util.module_from_spec(spec)
spec.loader.exec_module(causes)


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """A Python program from the root of the checkout, with this checkout's llmrun first on its path."""
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=400,  # many times what an idle machine takes
        check=False,
    )


def test_changelog_newest_heading_is_this_version() -> None:
    headings = re.findall(r"^## \[(.+?)\] - (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    version, day = headings[0]
    assert version == llmrun.__version__
    assert day == "Unreleased" or date.fromisoformat(day)


def test_wheel_holds_package_modelfiles_and_licence(tmp_path: Path) -> None:
    built = run("-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path))
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    sources = {path.relative_to(ROOT).as_posix() for path in (ROOT / "llmrun").rglob("*.py")}
    modelfiles = {f"llmrun/modelfiles/{path.name}" for path in (ROOT / "modelfiles").iterdir()}
    web = {path.relative_to(ROOT).as_posix() for path in (ROOT / "llmrun" / "web").iterdir()}
    assert modelfiles
    assert web
    assert sources | modelfiles | web <= names
    assert not [name for name in names if name.startswith(("tests/", "scripts/", "docs/"))]
    assert f"llmrun-{llmrun.__version__}.dist-info/licenses/LICENSE" in names


@pytest.mark.parametrize(
    "script", ["scripts/quickstart", "scripts/test", "scripts/check", "scripts/soak", ".ci/run"]
)
def test_script_is_executable_posix_shell(script: str) -> None:
    path = ROOT / script
    assert os.access(path, os.X_OK)
    assert path.read_text("utf-8").startswith("#!/bin/sh\n")
    checked = subprocess.run(["sh", "-n", path], capture_output=True, text=True, timeout=10, check=False)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("CMake Error: CMAKE_C_COMPILER not set, after EnableLanguage", "no C++ compiler"),
        ("CMake 3.21 or higher is required.  You are running version 3.16", "needs CMake"),
        (
            "was not created successfully because ensurepip is not\navailable.  On Debian",
            "virtual environments",
        ),
        ("c++: fatal error: Killed signal terminated program cc1plus", "out of memory"),
        ("ERROR: Could not install packages: [Errno 28] No space left on device", "disk is full"),
        ("broken by 'NewConnectionError('<pip'\nERROR: No matching distribution found", "cannot be reached"),
    ],
)
def test_cause_known_output_names_what_is_missing(output: str, words: str) -> None:
    reason = causes.cause(f"Collecting hatchling\n{output}\nERROR: failed")
    assert reason is not None
    assert words in reason
    assert "\n" not in reason


def test_cause_unknown_output_is_none() -> None:
    assert causes.cause("ERROR: something new") is None


def test_documents_match_the_code() -> None:
    checked = run("scripts/docs.py", "--check")
    assert checked.returncode == 0, checked.stderr


def test_package_lists_what_it_offers() -> None:
    assert dir(llmrun) == ["Client", "__version__", "load"]
