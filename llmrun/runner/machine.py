"""What this process has to compute with, as it is now."""

from __future__ import annotations

import os

import psutil

from llmrun.llama import devices


def cores() -> int:
    """Cores that this process may use; two threads of one core do not compute twice as fast."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, psutil.cpu_count(logical=False) or usable)


def has_gpu() -> bool:
    """Whether a part of a model may be computed elsewhere than on the CPU."""
    return any(device.kind in ("gpu", "igpu") for device in devices())


def gpu_memory() -> int:
    """Bytes free on all GPUs."""
    return sum(device.memory_free for device in devices() if device.kind == "gpu")
