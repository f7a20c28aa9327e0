"""A daemon's numbers while it is at rest: of its process, of its runners, of their KV cells."""

from __future__ import annotations

import re
from typing import Any

import psutil

from tests.real.daemons import Daemon

MB = 1 << 20
Sample = dict[str, float]
"""Numbers by what they are of: `daemon memory`, `smollm2:135m cells`, …"""


def at_rest(daemon: Daemon, models: int) -> bool:
    """Whether no request is anywhere, and `models` are loaded."""
    loaded = daemon.loaded()
    return (
        len(loaded) == models
        and daemon.is_at_rest()
        and not metric(daemon, "llmrun_waiting")
        and all(not model["stats"]["waiting"] and not model["stats"]["kv_used"] for model in loaded)
    )


def sample(daemon: Daemon) -> Sample:
    """See the module. Memory is in MB and what no other process shares; the model's file is not in it,
    nor are the prefixes that it keeps, which are bounded by themselves."""
    process = psutil.Process(daemon.process.pid)
    found = _of_process("daemon", process)
    found["processes"] = len(process.children(recursive=True))
    for model in daemon.loaded():
        found |= _of_process(model["name"], psutil.Process(model["pid"]))
        found[f"{model['name']} memory"] -= model["stats"]["kv_ram_bytes"] / MB
        found[f"{model['name']} cells in use"] = model["stats"]["kv_used"]
    return found


def _of_process(name: str, process: psutil.Process) -> Sample:
    memory = process.memory_info()
    return {
        f"{name} memory": (memory.rss - memory.shared) / MB,
        f"{name} files": process.num_fds(),
        f"{name} threads": process.num_threads(),
    }


def metric(daemon: Daemon, name: str, **labels: str) -> float:
    """The sum of a metric's samples that have these labels."""
    page: Any = daemon.http.get("/metrics").text
    lines = re.findall(rf"^{name}(?:\{{(.*)\}})? (\S+)$", page, re.MULTILINE)
    wanted = {f'{label}="{value}"' for label, value in labels.items()}
    return sum(float(value) for had, value in lines if wanted <= set(had.split(",")))
