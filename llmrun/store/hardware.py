"""This machine as far as models care: memory, the CPU's instructions, GPUs, memory bandwidth.

llama.cpp is asked for GPUs in a child process, and only where it was built for one, so that this process
stays free of native code.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import json
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_PROBE = """
import json
from llmrun.llama import devices
print(json.dumps([device.memory_free for device in devices() if device.kind == "gpu"]))
"""
_PROBE_PATIENCE = 60  # seconds
_SAMPLE = 512 << 20  # bytes over all threads: more than the caches hold
_TRIES = 4


@dataclass(frozen=True)
class Machine:
    """available, total: bytes of main memory, now and in all. features: of `avx2`, `avx512` and `dotprod`
    (ARM), those the CPU has. cores: those that compute apart. gpu_memory: bytes free on GPUs that llama.cpp
    can use. bandwidth: bytes a second that the CPU reads from memory, None where it was not measured."""

    available: int
    total: int
    features: frozenset[str]
    cores: int = 4
    gpu_memory: int = 0
    bandwidth: float | None = None


def this_machine(*, measure: bool = False) -> Machine:
    """What there is now; `measure` takes a fifth of a second for the bandwidth."""
    import psutil

    memory = psutil.virtual_memory()
    return Machine(
        available=int(memory.available),
        total=int(memory.total),
        features=cpu_features(),
        cores=psutil.cpu_count(logical=False) or 1,
        gpu_memory=_gpu_memory() if built_for_gpu() else 0,
        bandwidth=read_bandwidth() if measure else None,
    )


def cpu_features() -> frozenset[str]:
    """The instruction sets of this CPU that `kernels` asks for; empty where the system does not tell."""
    if platform.machine() in ("arm64", "aarch64"):
        # Every ARM that llama.cpp is of use on has it; Apple's have all had.
        return frozenset({"dotprod"}) if sys.platform == "darwin" or "asimddp" in cpu_flags() else frozenset()
    flags = cpu_flags()
    return frozenset(name for name, flag in (("avx2", "avx2"), ("avx512", "avx512f")) if flag in flags)


def cpu_flags() -> set[str]:
    """The instruction sets of this CPU as the system spells them; empty where it does not tell."""
    try:
        if sys.platform == "darwin":
            done = subprocess.run(
                ["sysctl", "-n", "machdep.cpu.features", "machdep.cpu.leaf7_features"],
                capture_output=True,
                text=True,
                check=False,
            )
            return set(done.stdout.lower().split())
        text = Path("/proc/cpuinfo").read_text("ascii", "replace")
    except OSError:
        return set()
    return {
        flag
        for line in text.splitlines()
        if line.partition(":")[0].strip() in ("flags", "Features")
        for flag in line.partition(":")[2].split()
    }


@functools.cache
def built_for_gpu() -> bool:
    """Whether llama.cpp's library lies beside one for a GPU. It is looked for, not loaded."""
    found = importlib.util.find_spec("llama_cpp")
    if found is None or not found.origin:
        return False
    names = {path.name for path in (Path(found.origin).parent / "lib").glob("*ggml-*")}
    return any(kind in name for name in names for kind in ("cuda", "metal", "vulkan", "hip", "sycl"))


def _gpu_memory() -> int:
    """Bytes free on the GPUs that llama.cpp sees; 0 where it cannot be asked."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROBE],
            capture_output=True,
            text=True,
            timeout=_PROBE_PATIENCE,
            check=True,
        )
        return sum(json.loads(done.stdout.splitlines()[-1]))
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return 0


def read_bandwidth(threads: int | None = None) -> float:
    """Bytes a second that all cores read from main memory together: the best of some rounds, in which each
    compares two blocks with C's memcmp, which outruns the memory and lets other threads run."""
    import psutil

    count = threads or psutil.cpu_count(logical=False) or 1
    compare, size = _memcmp(), _SAMPLE // (2 * count)
    blocks = [(bytearray(b"\1") * size, bytearray(b"\1") * size) for _ in range(count)]
    pairs = [tuple((ctypes.c_char * size).from_buffer(block) for block in pair) for pair in blocks]
    best = 0.0
    for _ in range(_TRIES):
        workers = [threading.Thread(target=compare, args=(*pair, size)) for pair in pairs]
        begun = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        best = max(best, 2 * size * count / (time.perf_counter() - begun))
    return best


def _memcmp() -> Callable[..., int]:
    library = ctypes.CDLL("msvcrt" if sys.platform == "win32" else None)
    compare = library.memcmp
    compare.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    compare.restype = ctypes.c_int
    return compare
