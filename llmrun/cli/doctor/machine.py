"""Python, the processor, the memory."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import psutil

from llmrun import __version__
from llmrun.cli.doctor.finding import Finding, ok, warning
from llmrun.store.disk import human
from llmrun.store.hardware import cpu_flags

# Instruction sets that llama.cpp has kernels for, as Linux and macOS spell them.
_FEATURES = {
    "sse4_2": "SSE4.2",
    "sse4.2": "SSE4.2",
    "avx": "AVX",
    "avx1.0": "AVX",
    "avx2": "AVX2",
    "f16c": "F16C",
    "fma": "FMA",
    "avx512f": "AVX-512",
    "avx512_vnni": "AVX-512 VNNI",
    "avx_vnni": "AVX VNNI",
    "amx_int8": "AMX",
    "asimd": "NEON",
    "asimddp": "dot product",
    "i8mm": "int8 matrix",
    "sve": "SVE",
}
LEAST_MEMORY = 1_000_000_000


def check_machine() -> list[Finding]:
    """What llmrun runs on."""
    return [
        ok("llmrun", f"{__version__}, Python {platform.python_version()} at {sys.executable}"),
        ok("system", platform.platform()),
        processor(processor_name(), processor_features(), psutil.cpu_count(logical=False)),
        memory(psutil.virtual_memory().total, psutil.virtual_memory().available),
    ]


def processor(name: str, features: list[str], cores: int | None) -> Finding:
    """A finding on the CPU; `features` empty where the system does not list them."""
    text = f"{name}, {cores or '?'} cores{': ' if features else ''}{', '.join(features)}"
    if platform.machine() in ("x86_64", "AMD64") and features and "AVX2" not in features:
        return warning("processor", f"{text}; without AVX2 answers are slow", "use a small model")
    return ok("processor", text)


def memory(total: int, available: int) -> Finding:
    """A finding on the memory, in bytes."""
    text = f"{human(available)} free of {human(total)}"
    if available < LEAST_MEMORY:
        return warning("memory", text, "close other programs, or: llmrun stop")
    return ok("memory", text)


def processor_name() -> str:
    for line in _cpuinfo():
        if line.startswith(("model name", "Hardware")):
            return line.partition(":")[2].strip()
    return _sysctl("machdep.cpu.brand_string") or platform.processor() or platform.machine()


def processor_features() -> list[str]:
    """Instruction sets that matter here, in a fixed order."""
    flags = cpu_flags()
    return list(dict.fromkeys(name for word, name in _FEATURES.items() if word in flags))


def _cpuinfo() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text("utf-8", "replace").splitlines() if path.exists() else []


def _sysctl(name: str) -> str:
    """macOS's facts about its processor; empty elsewhere."""
    if sys.platform != "darwin":
        return ""
    done = subprocess.run(["sysctl", "-n", name], capture_output=True, text=True, timeout=5, check=False)
    return done.stdout.strip()
