"""GGUF files for the store's tests: valid ones by the field's own writer, raw bytes for hostile ones."""

from __future__ import annotations

import struct
from pathlib import Path

import gguf
import numpy as np


def write_gguf(
    path: Path,
    *,
    architecture: str = "llama",
    size: int = 4096,
    seed: int = 0,
    text: dict[str, str] | None = None,
    numbers: dict[str, int] | None = None,
    floats: dict[str, float] | None = None,
    tokens: list[str] | None = None,
) -> Path:
    """A GGUF with one F32 tensor of `size` bytes; different seeds give different bytes."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_context_length(512)
    for key, value in (text or {}).items():
        writer.add_string(key, value)
    for key, number in (numbers or {}).items():
        writer.add_uint32(key, number)
    for key, real in (floats or {}).items():
        writer.add_float32(key, real)
    if tokens is not None:
        writer.add_token_list(tokens)
    weights = np.random.default_rng(seed).standard_normal(size // 4).astype(np.float32)
    writer.add_tensor("token_embd.weight", weights)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def gguf_bytes(folder: Path, **options: object) -> bytes:
    """The bytes that `write_gguf` would write."""
    path = write_gguf(folder / "made.gguf", **options)  # type: ignore[arg-type]
    data = path.read_bytes()
    path.unlink()
    return data


def text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def pair(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def tensor(name: str, shape: tuple[int, ...], kind: int, offset: int) -> bytes:
    dimensions = b"".join(struct.pack("<Q", length) for length in shape)
    return text(name) + struct.pack("<I", len(shape)) + dimensions + struct.pack("<IQ", kind, offset)


def header(
    *, pairs: tuple[bytes, ...] = (), tensors: tuple[bytes, ...] = (), version: int = 3, data: int = 0
) -> bytes:
    """A whole file of these pieces; `data` bytes of weights follow the padded header."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(pairs)) + b"".join((*pairs, *tensors))
    return head + bytes(-len(head) % 32) + bytes(data)
