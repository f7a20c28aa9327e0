"""Which llama.cpp is installed, read from its files: importing it would cost a second and may crash."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
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


_LLAMA = re.compile(r"libllama\.(?:so\.)?(\d+\.\d+\.\d+)(?:\.dylib)?")


@dataclass(frozen=True)
class Backend:
    """An installed llama.cpp. `bindings`: their version; `version`: llama.cpp's own, where a file name
    tells; `devices`: what its libraries can compute on, accelerators first."""

    bindings: str
    version: str | None
    devices: tuple[str, ...]


def backends_in(names: Iterable[str]) -> tuple[str, ...]:
    """The backends whose libraries are among these file names, accelerators first."""
    stems = {name.split(".")[0].removeprefix("lib").removeprefix("ggml-").split("-")[0] for name in names}
    return tuple(label for key, label in _BACKENDS.items() if key in stems)


def llama_cpp_in(names: Iterable[str]) -> str | None:
    """The version in the name of llama.cpp's own library, which Linux and macOS put there."""
    return next((match[1] for name in names if (match := _LLAMA.fullmatch(name))), None)


def find_backend() -> Backend | None:
    """The installed llama.cpp; None where there is none."""
    try:
        bindings = version(PACKAGE)
        spec = find_spec("llama_cpp")
    except PackageNotFoundError:
        return None
    if spec is None or spec.origin is None:
        return None
    folder = Path(os.environ.get("LLAMA_CPP_LIB_PATH") or Path(spec.origin).parent / "lib")
    names = sorted(path.name for path in folder.glob("*"))
    return Backend(bindings, llama_cpp_in(names), backends_in(names))


def version_line() -> str:
    """`llmrun X.Y.Z (llama.cpp …, backend …)`."""
    backend = find_backend()
    if backend is None:
        return f"llmrun {__version__} (llama.cpp missing, backend none)"
    own = f"{backend.version} of " if backend.version else "of "
    devices = "+".join(backend.devices) or "none"
    return f"llmrun {__version__} (llama.cpp {own}{PACKAGE} {backend.bindings}, backend {devices})"
