"""Which llama.cpp is installed, read from its files: importing it would cost a second and may crash."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from llmrun import __version__

PACKAGE = "llama-cpp-python"

# The shared libraries ggml builds, one per backend, and the name people know each by.
_BACKENDS = {
    "cuda": "CUDA",
    "hip": "ROCm",
    "metal": "Metal",
    "vulkan": "Vulkan",
    "sycl": "SYCL",
    "musa": "MUSA",
    "cann": "CANN",
    "opencl": "OpenCL",
    "cpu": "CPU",
}


@dataclass(frozen=True)
class Backend:
    """An installed llama.cpp: the bindings' version and what its libraries can compute on."""

    version: str
    folder: Path
    devices: tuple[str, ...]


def backends_in(names: list[str]) -> tuple[str, ...]:
    """The backends whose libraries are among these file names, accelerators first."""
    stems = {name.split(".")[0].removeprefix("lib").removeprefix("ggml-").split("-")[0] for name in names}
    return tuple(label for key, label in _BACKENDS.items() if key in stems)


def find_backend() -> Backend | None:
    """The installed llama.cpp; None where there is none."""
    try:
        installed = version(PACKAGE)
        spec = find_spec("llama_cpp")
    except PackageNotFoundError:
        return None
    if spec is None or spec.origin is None:
        return None
    folder = Path(os.environ.get("LLAMA_CPP_LIB_PATH") or Path(spec.origin).parent / "lib")
    names = sorted(path.name for path in folder.glob("*ggml-*"))
    return Backend(installed, folder, backends_in(names))


def version_line() -> str:
    """`llmrun X.Y.Z (llama.cpp …, backend …)`."""
    backend = find_backend()
    if backend is None:
        return f"llmrun {__version__} (llama.cpp missing, backend none)"
    devices = "+".join(backend.devices) or "none"
    return f"llmrun {__version__} (llama.cpp of {PACKAGE} {backend.version}, backend {devices})"
