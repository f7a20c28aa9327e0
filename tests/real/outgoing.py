"""Runs llmrun in a network namespace whose one way out is a link that counts packets.

`python -m tests.real.outgoing HOME OFFLINE COMMAND…` (each COMMAND a JSON list) runs the commands in such a
namespace, with a daemon of HOME between them, and prints `{"packets": …, "codes": […], "said": […]}`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx

from tests.real.daemons import CLEAN, COMMAND, Daemon

# Every address is behind `out`, whose other end hears all and answers nothing. No IPv6: it talks by itself.
LINK = """
set -e
echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6
ip link add out type veth peer name far
ip link set lo up
ip addr add 10.77.0.1/24 dev out
ip link set far up
ip link set out up
ip route add default via 10.77.0.2 dev out
ip neigh add 10.77.0.2 lladdr 02:00:00:00:00:01 dev out
exec "$@"
"""
SECONDS = 30


def inside(command: list[str]) -> list[str]:
    """`command`, to be run in a namespace of its own."""
    return ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", LINK, "sh", *command]


def packets() -> int:
    """How many packets went out so far."""
    for line in Path("/proc/self/net/dev").read_text().splitlines():
        name, _, counts = line.partition(":")
        if name.strip() == "out":
            return int(counts.split()[9])
    raise AssertionError("there is no link")


def run(home: str, offline: str, commands: list[list[str]]) -> dict[str, Any]:
    said, codes = [], []
    daemon = Daemon(Path(home), LLMRUN_CTX="512", LLMRUN_OFFLINE=offline)
    env = {**CLEAN, **daemon.env, "HF_HUB_CACHE": f"{home}/hub"}
    try:
        for command in commands:
            try:
                done = subprocess.run([*COMMAND, *command], env=env, capture_output=True, timeout=SECONDS)
            except subprocess.TimeoutExpired:
                codes.append(-1)
                continue
            codes.append(done.returncode)
            said.append((done.stdout + done.stderr).decode())
        with suppress(httpx.HTTPError):
            body = {"model": "ollama://192.0.2.1:80/a/b", "stream": False}
            said.append(daemon.http.post("/api/pull", json=body, timeout=5).text)
    finally:
        daemon.close()
    return {"packets": packets(), "codes": codes, "said": said}


def counted(home: Path, *, offline: bool, commands: list[list[str]]) -> dict[str, Any]:
    """What `run` finds in a namespace of its own."""
    words = [str(home), str(int(offline)), *map(json.dumps, commands)]
    done = subprocess.run(
        inside([sys.executable, "-m", "tests.real.outgoing", *words]),
        capture_output=True,
        timeout=110,
        cwd=Path(__file__).parents[2],
        env=os.environ,
    )
    assert done.returncode == 0, done.stderr.decode()
    found: dict[str, Any] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], sys.argv[2], [json.loads(word) for word in sys.argv[3:]])))
