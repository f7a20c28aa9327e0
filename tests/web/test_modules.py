"""The chat page's modules that need no browser, under Node's own test runner."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
WEB = HERE.parent.parent / "llmrun" / "web"
LONGEST = 200  # lines that a module of the page may have


def _node() -> str:
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=20).stdout
    if int(version.lstrip("v").partition(".")[0]) < 20:
        pytest.skip(f"Node {version.strip()} has no `node --test` as it is used here; 20 has")
    return node


@pytest.mark.parametrize("module", sorted(path.name for path in HERE.glob("*.test.js")))
def test_module_does_what_its_own_tests_say(module: str) -> None:
    done = subprocess.run(
        [_node(), "--test", str(HERE / module)], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"^[#ℹ] pass (\d+)$", done.stdout, re.MULTILINE)
    assert passed, done.stdout
    assert int(passed[1]) > 1, done.stdout


def test_modules_are_short_and_say_what_they_are() -> None:
    for path in WEB.glob("*.js"):
        lines = path.read_text("utf-8").splitlines()
        assert len(lines) <= LONGEST, path.name
        assert lines[0].startswith(("/**", "// ")), path.name


def test_no_module_makes_markup_out_of_text() -> None:
    makes = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\b|new Function"
    )
    assert not [path.name for path in WEB.glob("*.js") if makes.search(path.read_text("utf-8"))]


def test_page_asks_nothing_of_other_sites() -> None:
    """Addresses elsewhere stand in comments and in what names SVG's vocabulary, and nowhere else."""
    address = re.compile(r"""(?:src|href|url|fetch|import|from)\W{1,4}(?:https?:)?//""")
    assert not [path.name for path in WEB.iterdir() if address.search(path.read_text("utf-8"))]
