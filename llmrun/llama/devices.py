"""The devices llama.cpp sees, and how it was built."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llmrun.llama.library import ggml, lib

_KINDS = {0: "cpu", 1: "gpu", 2: "igpu", 3: "accelerator"}


@dataclass(frozen=True)
class Device:
    """One compute device: `memory_free` and `memory_total` in bytes (0 where it does not say)."""

    name: str
    description: str
    kind: str
    memory_free: int
    memory_total: int


def _function(library: ctypes.CDLL, name: str, restype: Any, *argtypes: Any) -> Callable[..., Any]:
    function = library[name]
    function.restype = restype
    function.argtypes = argtypes
    return function


def devices() -> list[Device]:
    """Every device that the loaded backends registered, in llama.cpp's own order."""
    registry: ctypes.CDLL = ggml.libggml
    # On Linux and macOS the properties live in libggml-base, which libggml links to.
    base = next(Path(ggml.libggml_base_path).glob("*ggml-base.*"), None)
    library = ctypes.CDLL(str(base)) if base else registry
    pointer = ctypes.c_void_p
    count = _function(registry, "ggml_backend_dev_count", ctypes.c_size_t)
    get = _function(registry, "ggml_backend_dev_get", pointer, ctypes.c_size_t)
    name = _function(library, "ggml_backend_dev_name", ctypes.c_char_p, pointer)
    description = _function(library, "ggml_backend_dev_description", ctypes.c_char_p, pointer)
    kind = _function(library, "ggml_backend_dev_type", ctypes.c_int, pointer)
    size = ctypes.POINTER(ctypes.c_size_t)
    memory = _function(library, "ggml_backend_dev_memory", None, pointer, size, size)

    found = []
    for i in range(count()):
        device = get(i)
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        memory(device, ctypes.byref(free), ctypes.byref(total))
        found.append(
            Device(
                name=name(device).decode(),
                description=description(device).decode(),
                kind=_KINDS.get(kind(device), "other"),
                memory_free=free.value,
                memory_total=total.value,
            )
        )
    return found


def system_info() -> str:
    """llama.cpp's own line on the backends and instruction sets it was built with."""
    return bytes(lib.llama_print_system_info()).decode().strip()
