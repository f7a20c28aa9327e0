"""The header of a GGUF file: metadata and the list of tensors. In: a file or a stream. Out: `GGUFHeader`.

The format is that of the GGUF specification in the ggml project (`docs/gguf.md`), versions 2 and 3, little
endian. The weights are never read. A file may be hostile: every length and count is checked against what
the file can hold before it is believed, nothing is allocated by a length the file names (`cursor`), no file
makes this take more than 64 MB (of what `read_header` remembers `_REMEMBERED` times as much), and whatever is
wrong ends as one `LlmrunError(BAD_FILE)` that names it.

Long arrays (the vocabulary) are skipped and stand in the metadata as `LongArray`; `read_strings` fetches
single elements later. Knows nothing of what the keys mean: see `facts`.
"""

from __future__ import annotations

import functools
import math
import os
import struct
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

from llmrun.errors import BAD_FILE, NOT_FOUND, LlmrunError
from llmrun.store.byte_sources import Reader
from llmrun.store.cursor import U32, U64, Bad, Cursor
from llmrun.store.ggml import TENSOR_TYPES, TensorType

MAX_PAIRS = 16_384
MAX_TENSORS = 32_768
MAX_NAME = 64  # GGML_MAX_NAME
MAX_DIMENSIONS = 4  # GGML_MAX_DIMS
MAX_KEY = 1024
MAX_TEXT = 4 << 20  # one string; the largest chat templates are near 30 kB
ELEMENT = 40  # bytes that a number of a kept array takes in memory
KEPT_ELEMENTS = 1024  # arrays up to this length are kept: per-layer settings, tags, languages
MAX_ALIGNMENT = 1 << 20
MAX_HEADER = 64 << 20  # of a stream whose length nobody knows
_SETTLED_NS = 2_000_000_000  # after which a file written again has another time: FAT keeps them to 2 s
_REMEMBERED = 16  # headers: all shards of most models; each takes some hundred KB

_STRING, _ARRAY = 8, 9
_SCALARS = {
    0: struct.Struct("<B"),
    1: struct.Struct("<b"),
    2: struct.Struct("<H"),
    3: struct.Struct("<h"),
    4: U32,
    5: struct.Struct("<i"),
    6: struct.Struct("<f"),
    7: struct.Struct("<?"),
    10: U64,
    11: struct.Struct("<q"),
    12: struct.Struct("<d"),
}
_T = TypeVar("_T")


@dataclass(frozen=True)
class LongArray:
    """An array that was not kept: `count` elements of GGUF type `kind`, the first at byte `offset`."""

    kind: int
    count: int
    offset: int


Scalar = int | float | bool | str
Value = Scalar | tuple[Scalar, ...] | LongArray


class Tensor(NamedTuple):
    """`offset` counts from the start of the data section; `size` is in bytes, without padding."""

    name: str
    shape: tuple[int, ...]
    type: TensorType
    offset: int
    size: int

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class GGUFHeader:
    """What a GGUF file says of itself. `data_offset` is where the weights start."""

    version: int
    metadata: Mapping[str, Value]
    tensors: tuple[Tensor, ...]
    data_offset: int

    def text(self, key: str) -> str | None:
        value = self.metadata.get(key)
        return value if isinstance(value, str) else None

    def integer(self, key: str) -> int | None:
        value = self.metadata.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def number(self, key: str) -> float | None:
        value = self.metadata.get(key)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    @property
    def parameters(self) -> int:
        return sum(tensor.elements for tensor in self.tensors)


def read_header(path: Path) -> GGUFHeader:
    """The header of the GGUF file at `path`. BAD_FILE where it is none, NOT_FOUND where it is not there.

    It is remembered, for to step over a vocabulary takes tens of milliseconds, and shared between threads: it
    is not to be changed."""
    try:
        stat = path.stat()
    except OSError:
        return _read_header(path)
    changed = max(stat.st_ctime_ns, stat.st_mtime_ns)
    if time.time_ns() - changed < _SETTLED_NS:
        return _read_header(path)
    return _remembered(path, (stat.st_dev, stat.st_ino, stat.st_size, changed))


@functools.lru_cache(maxsize=_REMEMBERED)
def _remembered(path: Path, state: tuple[int, ...]) -> GGUFHeader:  # noqa: ARG001 (what it is remembered by)
    return _read_header(path)


def _read_header(path: Path) -> GGUFHeader:
    return _with_file(path, lambda cursor: _parse(cursor, cursor.size))


def parse_header(file: Reader, size: int | None, name: str) -> GGUFHeader:
    """The header of the GGUF that `file` holds from its first byte on: a stream or a remote file (see
    `byte_sources`) of `size` bytes, None where that is not known. `name` says in errors what it is."""
    if size is None:
        return _worded(name, lambda: _parse(Cursor(file, MAX_HEADER), math.inf))
    return _worded(name, lambda: _parse(Cursor(file, size), size))


def read_strings(path: Path, array: LongArray, indices: Collection[int]) -> dict[int, str]:
    """The elements of a skipped string array at `indices`; those outside the array are left out."""
    wanted = {index for index in indices if 0 <= index < array.count}
    if array.kind != _STRING or not wanted:
        return {}

    def pick(cursor: Cursor) -> dict[int, str]:
        cursor.seek(array.offset)
        found = {}
        for index in range(max(wanted) + 1):
            if index in wanted:
                found[index] = cursor.text(MAX_TEXT)
            else:
                cursor.skip_strings(1)
        return found

    return _with_file(path, pick)


def _with_file(path: Path, use: Callable[[Cursor], _T]) -> _T:
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            return _worded(str(path), lambda: use(Cursor(file, size)))
    except FileNotFoundError:
        raise LlmrunError(NOT_FOUND, f"there is no file {path}", hint="check the path") from None
    except OSError as error:
        raise LlmrunError(BAD_FILE, f"{path} cannot be read: {error.strerror or error}") from None


def _worded(name: str, parse: Callable[[], _T]) -> _T:
    try:
        return parse()
    except Bad as problem:
        raise LlmrunError(
            BAD_FILE,
            f"{name} is not a usable GGUF file: {problem}",
            hint="fetch it again or use another file",
        ) from None


def _parse(cursor: Cursor, length: float) -> GGUFHeader:
    magic = cursor.raw(min(4, cursor.size))
    if magic != b"GGUF":
        begins = magic.decode("ascii", "backslashreplace")
        raise Bad(f"it begins with {begins!r}, not with 'GGUF'" if magic else "it is empty")
    version = _version(cursor.u32())
    tensor_count, pair_count = cursor.u64(), cursor.u64()
    # The smallest pair is key length, one character, type and one byte; the smallest tensor one number.
    if pair_count > min(MAX_PAIRS, cursor.left // 14):
        raise Bad(f"it claims {pair_count} metadata pairs")
    if tensor_count > min(MAX_TENSORS, cursor.left // 24):
        raise Bad(f"it claims {tensor_count} tensors")
    metadata: dict[str, Value] = {}
    for _ in range(pair_count):
        key = cursor.text(MAX_KEY)
        if not key or key in metadata:
            raise Bad(f"its metadata key {key!r} is empty or there twice")
        metadata[key] = _value(cursor, key)
    alignment = metadata.get("general.alignment", 32)
    if type(alignment) is not int or not 0 < alignment <= MAX_ALIGNMENT or alignment & (alignment - 1):
        raise Bad(f"its alignment {alignment!r} is not a power of two")
    names: set[str] = set()
    tensors = tuple(_tensor(cursor, names) for _ in range(tensor_count))
    data_offset = _padded(cursor.position, alignment)
    _check_layout(tensors, alignment, length - data_offset)
    return GGUFHeader(version, metadata, tensors, data_offset)


def _version(version: int) -> int:
    if version == 1:
        raise Bad("it is of GGUF version 1, which llama.cpp no longer reads")
    if version & 0xFFFF == 0 and version:
        raise Bad("it is big-endian; this machine reads little-endian files")
    if version not in (2, 3):
        raise Bad(f"it is of GGUF version {version}; versions 2 and 3 are known")
    return version


def _value(cursor: Cursor, key: str) -> Value:
    kind = cursor.u32()
    if kind == _STRING:
        return cursor.text(MAX_TEXT)
    if kind != _ARRAY:
        return cursor.scalar(_form(kind, key))
    kind, count = cursor.u32(), cursor.u64()
    if kind == _STRING:
        if count > cursor.left // 8:
            raise Bad(f"the array {key!r} claims {count} texts")
        if count <= KEPT_ELEMENTS:
            return tuple(cursor.text(MAX_TEXT) for _ in range(count))
        array = LongArray(kind, count, cursor.position)
        cursor.skip_strings(count)
        return array
    if kind == _ARRAY:
        raise Bad(f"the array {key!r} holds arrays, which llama.cpp does not read")
    form = _form(kind, key)
    if count > cursor.left // form.size:
        raise Bad(f"the array {key!r} claims {count} numbers")
    if count <= KEPT_ELEMENTS:
        cursor.keep(count * ELEMENT)
        return tuple(cursor.scalar(form) for _ in range(count))
    array = LongArray(kind, count, cursor.position)
    cursor.skip(count * form.size)
    return array


def _form(kind: int, key: str) -> struct.Struct:
    form = _SCALARS.get(kind)
    if form is None:
        raise Bad(f"the metadata key {key!r} has the unknown type {kind}")
    return form


def _tensor(cursor: Cursor, names: set[str]) -> Tensor:
    name = cursor.text(MAX_NAME - 1)
    if name in names:
        raise Bad(f"the tensor {name!r} is there twice")
    names.add(name)
    dimensions = cursor.u32()
    if dimensions > MAX_DIMENSIONS:
        raise Bad(f"the tensor {name!r} has {dimensions} dimensions")
    shape = tuple(cursor.u64() for _ in range(dimensions))
    number = cursor.u32()
    kind = TENSOR_TYPES.get(number)
    if kind is None:
        raise Bad(f"the tensor {name!r} has the unknown type {number}")
    row = shape[0] if shape else 1
    elements = math.prod(shape)
    if elements >= 1 << 63 or row % kind.block:
        raise Bad(f"the tensor {name!r} of type {kind.name} has the impossible shape {shape}")
    return Tensor(name, shape, kind, cursor.u64(), elements // kind.block * kind.size)


def _padded(position: int, alignment: int) -> int:
    return (position + alignment - 1) & -alignment


def _check_layout(tensors: tuple[Tensor, ...], alignment: int, room: float) -> None:
    """Tensors lie one after the other, as llama.cpp demands, so none overlaps; all are in the file."""
    expected = 0
    for tensor in tensors:
        if tensor.offset != expected:
            raise Bad(f"the tensor {tensor.name!r} is said to be at {tensor.offset}, not at {expected}")
        if tensor.offset + tensor.size > room:
            beyond = int(tensor.offset + tensor.size - room)
            raise Bad(f"the tensor {tensor.name!r} ends {beyond} bytes after the file does")
        expected = _padded(tensor.offset + tensor.size, alignment)
