"""What this process has to compute with, as it is now."""

from __future__ import annotations

import os

import psutil

from llmrun.llama import devices


def cores() -> int:
    """Cores that this process may use; two threads of one core do not compute twice as fast."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, psutil.cpu_count(logical=False) or usable)


def gpu_memory() -> int:
    """Bytes free on all GPUs."""
    return sum(device.memory_free for device in devices() if device.kind == "gpu")
