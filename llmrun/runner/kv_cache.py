"""Where a model's KV prefixes go when they leave the KV cache, and under which name."""

from __future__ import annotations

import hashlib
from pathlib import Path

import psutil

from llmrun.engine import SavedPrefixes
from llmrun.engine.disk_prefixes import DiskPrefixes
from llmrun.llama import llama_version, system_info
from llmrun.runner.frames import Load
from llmrun.runner.sizing import cache_bytes
from llmrun.store.anatomy import Anatomy
from llmrun.store.disk import free_space

# A hundred times the bytes of weights that are read while one head passes over one cell: two threads of an
# AMD EPYC read some 17 GB/s, and pass over a cell with 270 heads in 0.26 µs.
_BYTES_A_HEAD = 1_600


def most_retained(shape: Anatomy) -> int:
    """Cells that ended sequences may keep in a cache that is shared on a CPU (`llmrun.engine.prefix_cache`):
    passing over them takes about a hundredth of the time in which a step reads its weights."""
    return shape.active // (_BYTES_A_HEAD * max(1, len(shape.layers) * shape.heads))


def saved_prefixes(spec: Load, *, whole: bool, streams: int = 1, flash: bool | None = None) -> SavedPrefixes:
    """The tiers behind the KV cache of a model; `whole`: as in `SavedPrefixes`; `flash`: as in `Attention`;
    `streams`: how many KV caches it has: what llama.cpp saves of a sequence names the empty ones too."""
    folder = Path(spec.kv_folder) if spec.kv_folder else None
    disk = free_space(folder) if folder else 0
    ram_bytes, disk_bytes = cache_bytes(spec, memory=psutil.virtual_memory().total, disk=disk)
    shelf = None
    if folder is not None and disk_bytes and spec.content:
        shelf = DiskPrefixes(folder, _kv_key(spec, streams, flash), disk_bytes, whole=whole)
    return SavedPrefixes(ram_bytes, shelf, whole=whole)


def _kv_key(spec: Load, streams: int, flash: bool | None) -> str:
    """A name for all that decides which KV a run of tokens has, and how it lies in memory: the bytes of model
    and adapters, the number type, flash attention (without it V lies transposed), the kernels."""
    decides = (
        *(spec.content, *map(_identity, spec.adapters), spec.kv_type, str(streams)),
        *(str(flash), llama_version(), system_info()),
    )
    return hashlib.sha256("\0".join(decides).encode()).hexdigest()[:32]


def _identity(path: str) -> str:
    found = Path(path).stat()
    return f"{path} {found.st_size}@{found.st_mtime_ns}"
