"""llama.cpp as it is installed. It is loaded in a child process, so that a crash there is a finding."""

from __future__ import annotations

import json
import platform
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Any

from llmrun.cli.doctor.finding import Finding, broken, ok, warning
from llmrun.cli.version import PACKAGE, find_backend
from llmrun.client.child import environment
from llmrun.store.disk import human
from llmrun.store.hardware import cpu_flags

TIMEOUT = 60
_PROBE = """
import json, dataclasses
from llmrun.errors import LlmrunError
try:
    from llmrun.llama import devices, llama_version, system_info
except LlmrunError as error:
    print(json.dumps({"error": error.message, "hint": error.hint}))
else:
    found = [dataclasses.asdict(device) for device in devices()]
    print(json.dumps({"version": llama_version(), "system": system_info(), "devices": found}))
"""
# The flag of llama.cpp's build for each maker's GPUs.
_BUILD_FOR = {"NVIDIA": "GGML_CUDA", "AMD": "GGML_HIP", "Apple": "GGML_METAL", "Vulkan": "GGML_VULKAN"}
# Flags of processors beside llama.cpp's names for the kernels that use them.
_KERNELS = {"avx2": "AVX2", "fma": "FMA", "f16c": "F16C", "avx512f": "AVX512", "asimddp": "DOTPROD"}
_COMPILERS = ("c++", "g++", "clang++", "cl")


def check_backend(env: dict[str, str]) -> list[Finding]:
    """Whether llama.cpp is there, loads, and sees what the machine has."""
    if find_backend() is None:
        return [broken("llama.cpp", f"{PACKAGE} is not installed", install()), *compiler(_found_compiler())]
    done = subprocess.run(
        [sys.executable, "-c", _PROBE],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
        env=environment(env),
    )
    return judge(done.returncode, done.stdout, done.stderr, gpus(), cpu_flags())


def gpus() -> list[str]:
    """The makers of GPUs that the system has a driver for."""
    found = ["NVIDIA"] if shutil.which("nvidia-smi") or Path("/proc/driver/nvidia/version").exists() else []
    if Path("/dev/kfd").exists():
        found.append("AMD")
    if sys.platform == "darwin" and platform.machine() == "arm64":
        found.append("Apple")
    if not found and shutil.which("vulkaninfo") and any(Path("/dev/dri").glob("renderD*")):
        found.append("Vulkan")
    return found


def judge(
    code: int, stdout: str, stderr: str, gpus: Sequence[str], cpu: AbstractSet[str] = frozenset()
) -> list[Finding]:
    """What the probe's end and words mean, beside what the system has: makers of GPUs, and the flags of
    its processor."""
    if code < 0:
        name = signal.Signals(-code).name
        return [broken("llama.cpp", f"loading it ends with {name}: it was built for another CPU", rebuild())]
    if code:
        last = stderr.strip().splitlines()[-1:] or ["it says nothing"]
        return [broken("llama.cpp", f"it cannot be loaded: {last[0]}", rebuild())]
    report: dict[str, Any] = json.loads(stdout.splitlines()[-1])
    if "error" in report:
        return [broken("llama.cpp", report["error"], report["hint"])]
    devices, built = report["devices"], features(report["system"])
    findings = [
        ok("llama.cpp", f"{report['version']}, built with {', '.join(built)}"),
        ok("devices", "; ".join(map(_device, devices)) or "none but the CPU"),
    ]
    if gpus and all(device["kind"] == "cpu" for device in devices):
        mend = f"CMAKE_ARGS='-D{_BUILD_FOR[gpus[0]]}=on' {rebuild()}"
        text = f"there is a GPU ({', '.join(gpus)}) that this llama.cpp cannot use"
        findings.append(warning("gpu", text, mend))
    unused = [name for flag, name in _KERNELS.items() if flag in cpu and name not in built]
    if unused:
        text = f"answers could be faster: it was built without this processor's {', '.join(unused)}"
        findings.append(warning("llama.cpp", text, f"CMAKE_ARGS='-DGGML_NATIVE=on' {rebuild()}"))
    return findings


def features(system: str) -> list[str]:
    """What is on in llama.cpp's own line `CPU : AVX = 1 | AVX2 = 1 | …`."""
    return re.findall(r"(\w+) = 1", system)


def compiler(found: str | None) -> list[Finding]:
    """Only of interest where llama.cpp has still to be built."""
    if found:
        return [ok("compiler", found)]
    mend = "xcode-select --install" if sys.platform == "darwin" else "sudo apt-get install -y g++"
    return [broken("compiler", "there is no C++ compiler to build llama.cpp with", mend)]


def requirement() -> str:
    """The bindings as this llmrun wants them: pinned, where its own metadata is installed."""
    try:
        wanted = requires("llmrun") or []
    except PackageNotFoundError:
        return PACKAGE
    return next((text for text in wanted if text.startswith(PACKAGE)), PACKAGE)


def install() -> str:
    return f"{sys.executable} -m pip install {requirement()}"


def rebuild() -> str:
    return f"{sys.executable} -m pip install --force-reinstall --no-deps --no-cache-dir {requirement()}"


def _found_compiler() -> str | None:
    return next((path for name in _COMPILERS if (path := shutil.which(name))), None)


def _device(device: dict[str, Any]) -> str:
    memory = f", {human(device['memory_total'])}" if device["memory_total"] else ""
    return f"{device['name']} ({device['description'].strip()}{memory})"
