"""Importance matrices: how much each column of a weight matters. In: a file. Out: its numbers by tensor name.

Both of llama.cpp's formats (`tools/imatrix`) are read: GGUF with `NAME.in_sum2` and `NAME.counts`, and the
older `.dat`: a count of entries, then for each the length of its name, the name, how often it was used, how
many numbers follow, and the numbers. What comes out is the mean, as `llama-quantize` passes it on.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt

from llmrun.errors import BAD_FILE, LlmrunError
from llmrun.store.gguf import GGUFHeader, Tensor, read_header

Numbers = npt.NDArray[np.float32]
_SUMS, _COUNTS = ".in_sum2", ".counts"
_LONGEST_NAME = 256


def read_imatrix(path: Path) -> dict[str, Numbers]:
    """The importances in `path`, finite numbers only. BAD_FILE where it holds none."""
    try:
        with path.open("rb") as file:
            is_gguf = file.read(4) == b"GGUF"
        matrix = _from_gguf(path, read_header(path)) if is_gguf else _from_dat(path.read_bytes())
    except OSError as error:
        raise LlmrunError(BAD_FILE, f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, struct.error):
        matrix = {}
    if not matrix or not all(np.isfinite(values).all() for values in matrix.values()):
        raise LlmrunError(
            BAD_FILE, f"{path} is no importance matrix", hint="make one with llama.cpp's llama-imatrix"
        )
    return matrix


def _from_gguf(path: Path, header: GGUFHeader) -> dict[str, Numbers]:
    tensors = {tensor.name: tensor for tensor in header.tensors}
    data = np.memmap(path, np.uint8, "r")
    matrix = {}
    for name, tensor in tensors.items():
        counts = tensors.get(name.removesuffix(_SUMS) + _COUNTS)
        if name.endswith(_SUMS) and counts:
            sums = _values(data, header, tensor)
            times = _values(data, header, counts)[:, None]
            rows = sums.reshape(len(times), -1)
            mean = np.divide(rows, times, out=np.ones_like(rows), where=times > 0)
            matrix[name.removesuffix(_SUMS)] = mean.ravel()
    return matrix


def _values(data: npt.NDArray[np.uint8], header: GGUFHeader, tensor: Tensor) -> Numbers:
    if tensor.type.name != "F32":
        raise ValueError(tensor.type.name)
    start = header.data_offset + tensor.offset
    return data[start : start + tensor.size].view(np.float32)


def _from_dat(data: bytes) -> dict[str, Numbers]:
    """Every length is checked by the slicing that it leads to: what is too short raises ValueError."""
    matrix = {}
    (count,), at = struct.unpack_from("<i", data), 4
    for _ in range(count):
        (length,) = struct.unpack_from("<i", data, at)
        if not 0 < length <= _LONGEST_NAME:
            raise ValueError(length)
        name = data[at + 4 : at + 4 + length].decode()
        calls, size = struct.unpack_from("<ii", data, at + 4 + length)
        at += 12 + length
        if size <= 0:
            raise ValueError(size)
        values = np.frombuffer(data, np.float32, size, at)
        at += 4 * size
        matrix[name] = values / np.float32(calls) if calls > 0 else values
    return matrix
