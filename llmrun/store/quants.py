"""The GGUF files of a repository: which belong together, what quant each is, which to take.

Pure: file names in, a choice out. File naming is the ggml project's convention (`docs/gguf.md`), as far as
publishers follow it: the quant ends the name, shards end in `-00001-of-00003`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from llmrun.errors import NOT_FOUND, LlmrunError
from llmrun.store.disk import human
from llmrun.store.kernels import trade

if TYPE_CHECKING:
    from llmrun.store.hardware import Machine

_SHARD = re.compile(r"(.+)-(\d{5})-of-(\d{5})\.gguf", re.IGNORECASE)
_QUANT = re.compile(
    r"(?:^|[-._])((?:UD-)?(?:I?Q\d+_K(?:_[A-Z]{1,2})?|I?Q\d+_\d(?:_\d+)*|IQ\d+_[A-Z]+|TQ\d_\d|MXFP4(?:_MOE)?"
    r"|NVFP4|BF16|F16|FP16|F32|FP32))$",
    re.IGNORECASE,
)
_NOT_WEIGHTS = re.compile(r"mmproj|imatrix", re.IGNORECASE)
_SMALL = 1 << 30
_RUNNERS_UP = 2  # told of
_LUMP = 512 << 20  # KV cache, buffers and the process


@dataclass(frozen=True)
class Weights:
    """One model in a repository: its files in order and their bytes together (None: not known)."""

    label: str
    files: tuple[str, ...]
    size: int | None


def shard_siblings(name: str) -> tuple[str, ...]:
    """All files of the model that `name` is one of, in order; just `name` where it is no shard."""
    match = _SHARD.fullmatch(name)
    if not match:
        return (name,)
    return tuple(f"{match[1]}-{i:05}-of-{match[3]}.gguf" for i in range(1, int(match[3]) + 1))


def model_stem(name: str) -> str:
    """A file name without `.gguf` and without a shard's number."""
    match = _SHARD.fullmatch(name)
    return match[1] if match else re.sub(r"(?i)\.gguf$", "", name)


def split_label(name: str) -> tuple[str, str]:
    """A file name as (model, quant), the quant empty where none is named: `A-Q4_K_M.gguf` is `A, Q4_K_M`."""
    path = PurePosixPath(name)
    base = model_stem(path.name)
    if match := _QUANT.search(base):
        return base[: match.start()], match[1]
    folder = _QUANT.fullmatch(path.parent.name)
    return base, folder[1] if folder else ""


def weights_in(sizes: Mapping[str, int | None]) -> list[Weights]:
    """The models among a repository's files (path to bytes), shallow paths first. Incomplete shards and
    files that hold no language model (projectors, importance matrices) are left out."""
    found = []
    for name in sorted(sizes, key=lambda path: (path.count("/"), path)):
        if not name.lower().endswith(".gguf") or _NOT_WEIGHTS.search(name):
            continue
        files = shard_siblings(name)
        if name != files[0] or any(part not in sizes for part in files):
            continue
        parts = [size for part in files if (size := sizes[part]) is not None]
        found.append(Weights(split_label(name)[1], files, sum(parts) if len(parts) == len(files) else None))
    return found


def choose(repo: str, offered: list[Weights], quant: str | None, machine: Machine) -> tuple[Weights, str]:
    """The weights to take and, in one line, why. NOT_FOUND, with what there is, where nothing is as asked."""
    if not offered:
        raise LlmrunError(NOT_FOUND, f"{repo} holds no GGUF model", hint="look for a repository named …-GGUF")
    if quant:
        for wanted in (quant.upper(), f"UD-{quant.upper()}"):
            for weights in offered:
                if weights.label.upper() == wanted:
                    return weights, f"{weights.label} as asked"
        there = ", ".join(dict.fromkeys(weights.label or weights.files[0] for weights in offered))
        raise LlmrunError(NOT_FOUND, f"{repo} has no quant {quant}", hint=f"there are: {there}")
    return _best(offered, machine)


def _best(offered: list[Weights], machine: Machine) -> tuple[Weights, str]:
    """The best by `trade` in `kernels` of those that fit the GPU, else of those that fit the main memory; the
    smallest where none does."""
    if len(offered) == 1:
        return offered[0], f"{_sized(offered[0])}: the only one there is"
    for room, on_gpu in ((machine.gpu_memory, True), (machine.available, False)):
        fitting = [weights for weights in offered if expected_memory(weights.size or 0) <= room]
        if fitting:
            where = f"this {'GPU' if on_gpu else 'processor'} and {human(room)}"
            ranked = sorted(fitting, key=lambda one: trade(one.label, one.size, machine, on_gpu))
            return _told(ranked, where)
    smallest = min(offered, key=lambda weights: weights.size or 1 << 62)
    return smallest, f"{_sized(smallest)}: the smallest, as none fits the {human(machine.available)} free"


def _told(ranked: list[Weights], where: str) -> tuple[Weights, str]:
    best, reason = ranked[0], "the best trade of quality for speed that fits"
    eight = next((weights for weights in ranked if weights.label.upper() == "Q8_0"), None)
    if eight and eight.size and eight.size <= _SMALL:
        best, reason = eight, "the model is small, so near-full quality costs little on"
    others = [_sized(weights) for weights in ranked if weights is not best][:_RUNNERS_UP]
    after = f"; else {', '.join(others)}" if others else ""
    return best, f"{_sized(best)}: {reason} {where}{after}"


def expected_memory(size: int) -> int:
    """Bytes that a model of this size on disk takes with a context of some thousand tokens."""
    return size + size // 5 + _LUMP


def _sized(weights: Weights) -> str:
    name = weights.label or weights.files[0]
    return f"{name} ({human(weights.size)})" if weights.size else name
