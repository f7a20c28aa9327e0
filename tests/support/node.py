"""Official clients for Node, fetched once into `.cache/` beside the tests; tests skip where there is none."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

HOME = Path(__file__).parents[2] / ".cache" / "tests" / "node"


class Node:
    """Runs programs that may import one npm package."""

    def __init__(self, package: str) -> None:
        """Skips the test where Node is missing or the package cannot be had."""
        node, npm = shutil.which("node"), shutil.which("npm")
        if not (node and npm):
            pytest.skip("Node is not installed")
        self._node = node
        HOME.mkdir(parents=True, exist_ok=True)
        with FileLock(HOME / "lock"):  # another process of the same tests may fetch too
            if not (HOME / "node_modules" / package).is_dir():
                fetch = [npm, "install", "--no-audit", "--no-fund", "--silent", "--prefix", HOME, package]
                if subprocess.run(fetch, capture_output=True, timeout=100).returncode:
                    pytest.skip(f"npm cannot fetch {package}")

    def run(self, program: str, **values: Any) -> Any:
        """The JSON that a module prints; it finds `values` in the object `given`."""
        source = f"const given = {json.dumps(values)};\n{program}"
        done = subprocess.run(
            [self._node, "--input-type=module", "--eval", source],
            cwd=HOME,
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
