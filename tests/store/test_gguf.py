from __future__ import annotations

import io
import os
import struct
import time
import tracemalloc
from pathlib import Path

import gguf as oracle
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llmrun.errors import BAD_FILE, NOT_FOUND, LlmrunError
from llmrun.store import cursor
from llmrun.store.byte_sources import Forward, Ranges
from llmrun.store.ggml import TENSOR_TYPES
from llmrun.store.gguf import GGUFHeader, LongArray, parse_header, read_header, read_strings
from tests.store.models import gguf_bytes, header, pair, tensor, text, write_gguf

U32, F32, BOOL, STRING, ARRAY, U64 = 4, 6, 7, 8, 9, 10
ARCHITECTURE = pair("general.architecture", STRING, text("llama"))


def read(folder: Path, data: bytes) -> GGUFHeader:
    path = folder / "x.gguf"
    path.write_bytes(data)
    return read_header(path)


def refusal(folder: Path, data: bytes) -> str:
    with pytest.raises(LlmrunError) as caught:
        read(folder, data)
    assert caught.value.kind is BAD_FILE
    assert "x.gguf" in caught.value.message
    return caught.value.message


def test_read_header_file_of_the_fields_own_writer_agrees_with_its_reader(tmp_path: Path) -> None:
    tokens = [f"token {i} 模型" for i in range(3000)]
    path = write_gguf(tmp_path / "a.gguf", text={"general.name": "Ünï"}, tokens=tokens, size=8192)
    ours, theirs = read_header(path), oracle.GGUFReader(path)
    assert ours.text("general.name") == "Ünï"
    assert ours.integer("llama.context_length") == 512
    assert [(t.name, t.type.name, t.size, ours.data_offset + t.offset) for t in ours.tensors] == [
        (t.name, t.tensor_type.name, t.n_bytes, t.data_offset) for t in theirs.tensors
    ]
    assert ours.parameters == 2048
    array = ours.metadata["tokenizer.ggml.tokens"]
    assert isinstance(array, LongArray)
    assert array.count == 3000
    assert read_strings(path, array, [0, 1, 2999, 3000, -1]) == {
        0: tokens[0],
        1: tokens[1],
        2999: tokens[2999],
    }


def test_tensor_types_agree_with_the_fields_own_table() -> None:
    theirs = {
        kind.value: (kind.name, *oracle.GGML_QUANT_SIZES[kind])
        for kind in oracle.GGMLQuantizationType
        if kind in oracle.GGML_QUANT_SIZES
        and kind.name != "Q8_1"  # never in files; its size is outdated there
    }
    ours = {number: tuple(kind) for number, kind in TENSOR_TYPES.items()}
    assert {number: ours[number] for number in theirs if number in ours} == theirs


def test_read_header_every_scalar_kind_is_read(tmp_path: Path) -> None:
    values = {
        "u8": (0, "<B", 200),
        "i8": (1, "<b", -3),
        "u16": (2, "<H", 60000),
        "i16": (3, "<h", -30000),
        "u32": (4, "<I", 4_000_000_000),
        "i32": (5, "<i", -2),
        "f32": (6, "<f", 0.5),
        "bool": (7, "<?", True),
        "u64": (10, "<Q", 1 << 60),
        "i64": (11, "<q", -(1 << 60)),
        "f64": (12, "<d", 0.1),
    }
    pairs = tuple(pair(key, kind, struct.pack(form, value)) for key, (kind, form, value) in values.items())
    metadata = read(tmp_path, header(pairs=pairs)).metadata
    assert metadata == {key: value for key, (_, _, value) in values.items()}


def test_read_header_short_arrays_are_kept_and_long_ones_skipped(tmp_path: Path) -> None:
    def array(key: str, kind: int, items: list[bytes]) -> bytes:
        return pair(key, ARRAY, struct.pack("<IQ", kind, len(items)) + b"".join(items))

    data = header(
        pairs=(
            array("few", U32, [struct.pack("<I", i) for i in range(5)]),
            array("words", STRING, [text("a"), text("b")]),
            array("many", F32, [bytes(4)] * 5000),
            array("texts", STRING, [text("x" * (i % 50)) for i in range(5000)]),
            pair("last", BOOL, b"\x01"),
        )
    )
    metadata = read(tmp_path, data).metadata
    assert metadata["few"] == (0, 1, 2, 3, 4)
    assert metadata["words"] == ("a", "b")
    assert isinstance(metadata["many"], LongArray)
    assert isinstance(metadata["texts"], LongArray)
    assert metadata["last"] is True


def test_read_header_window_smaller_than_a_text_makes_no_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = ["x" * (i % 300) for i in range(2000)]
    data = gguf_bytes(tmp_path, tokens=tokens, text={"tokenizer.chat_template": "t" * 1000})
    whole = read(tmp_path, data)
    monkeypatch.setattr(cursor, "WINDOW", 64)
    assert read(tmp_path, data) == whole


@pytest.mark.parametrize("version", [2, 3])
def test_read_header_version_2_and_3_are_read(tmp_path: Path, version: int) -> None:
    assert read(tmp_path, header(version=version, pairs=(ARCHITECTURE,))).version == version


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "empty"),
        (b"GGUF", "ends in the middle"),
        (b"GGU", "begins with 'GGU'"),
        (b"<!DOCTYPE html>", "begins with '<!DO'"),
        (header(version=1), "version 1"),
        (header(version=4), "version 4"),
        (b"GGUF" + struct.pack(">I", 3) + bytes(16), "big-endian"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 62), "metadata pairs"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1 << 62, 0), "tensors"),
        (header(pairs=(ARCHITECTURE,)).rstrip(b"\0")[:-3], "ends in the middle"),
        (header(pairs=(struct.pack("<Q", 1 << 60) + bytes(40),)), "more than"),
        (header(pairs=(pair("", U32, bytes(4)),)), "empty or there twice"),
        (header(pairs=(ARCHITECTURE, ARCHITECTURE)), "empty or there twice"),
        (header(pairs=(pair("k", 99, bytes(8)),)), "unknown type 99"),
        (header(pairs=(pair("k", ARRAY, struct.pack("<IQ", 99, 1) + bytes(8)),)), "unknown type 99"),
        (header(pairs=(pair("k", ARRAY, struct.pack("<IQ", ARRAY, 1) + bytes(8)),)), "holds arrays"),
        (header(pairs=(pair("k", ARRAY, struct.pack("<IQ", U32, 1 << 61)),)), "numbers"),
        (header(pairs=(pair("k", ARRAY, struct.pack("<IQ", STRING, 1 << 61)),)), "texts"),
        (header(pairs=(pair("k", STRING, struct.pack("<Q", 1 << 63)),)), "more than"),
        (header(pairs=(pair("general.alignment", U32, struct.pack("<I", 3)),)), "power of two"),
        (header(pairs=(pair("general.alignment", U32, bytes(4)),)), "power of two"),
        (header(pairs=(pair("general.alignment", STRING, text("32")),)), "power of two"),
        (header(tensors=(tensor("t", (8,), 0, 0),), data=31), "after the file"),
        (header(tensors=(tensor("t", (8,), 0, 1 << 40),), data=64), "said to be at"),
        (header(tensors=(tensor("a", (8,), 0, 0), tensor("b", (8,), 0, 16)), data=64), "said to be at"),
        (header(tensors=(tensor("t", (1 << 40, 1 << 40), 0, 0),), data=64), "impossible shape"),
        (header(tensors=(tensor("t", (33,), 2, 0),), data=64), "impossible shape"),
        (header(tensors=(tensor("t", (8,), 99, 0),), data=64), "unknown type 99"),
        (header(tensors=(tensor("t", (1,) * 5, 0, 0),), data=64), "5 dimensions"),
        (header(tensors=(tensor("t" * 64, (8,), 0, 0),), data=64), "more than"),
        (header(tensors=(tensor("t", (8,), 0, 0), tensor("t", (8,), 0, 32)), data=64), "there twice"),
    ],
)
def test_read_header_hostile_file_is_refused_with_the_reason(tmp_path: Path, data: bytes, what: str) -> None:
    assert what in refusal(tmp_path, data)


def test_read_header_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(LlmrunError) as caught:
        read_header(tmp_path / "none.gguf")
    assert caught.value.kind is NOT_FOUND


def test_read_header_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LlmrunError) as caught:
        read_header(tmp_path)
    assert caught.value.kind is BAD_FILE


def test_read_header_many_large_texts_stop_at_the_bound(tmp_path: Path) -> None:
    big = text("x" * (3 << 20))
    data = header(pairs=tuple(pair(f"k{i}", STRING, big) for i in range(8)))
    assert "metadata takes more" in refusal(tmp_path, data)


def test_read_header_large_vocabulary_takes_little_memory(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "a.gguf", tokens=[f"token number {i}" for i in range(100_000)])
    tracemalloc.start()
    read_header(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20


def _greedy(name: str) -> bytes:
    """A file made to take as much memory as it can."""
    if name == "arrays":  # of one-byte numbers, which grow most
        numbers = struct.pack("<IQ", 0, 1024) + bytes(range(256)) * 4
        return header(pairs=tuple(pair(f"k{i}", ARRAY, numbers) for i in range(16_000)))
    if name == "wide texts":  # one character of four bytes makes all take four
        wide = text("x" * ((4 << 20) - 8) + "🦙")
        return header(pairs=tuple(pair(f"k{i}", STRING, wide) for i in range(8)))
    if name == "broken text":
        return header(pairs=(pair("k", STRING, text("🦙".encode() + b"\xff" * ((4 << 20) - 8))),))
    names = tuple(tensor(f"tensor number {i:030}", (1, 1, 1, 1), 0, 32 * i) for i in range(32_000))
    return header(tensors=names, data=32 * 32_000)


@pytest.mark.parametrize("name", ["arrays", "wide texts", "broken text", "tensors"])
def test_read_header_no_file_takes_more_than_64_mb(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(_greedy(name))
    tracemalloc.start()
    read_or_refuse(tmp_path, None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 << 20


@pytest.fixture(scope="module")
def valid(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return gguf_bytes(
        tmp_path_factory.mktemp("gguf"),
        size=64,
        tokens=[f"t{i}" for i in range(1100)],
        text={"general.name": "n", "tokenizer.chat_template": "{{ x }}"},
    )


def read_or_refuse(folder: Path, data: bytes | None) -> None:
    """Read `data`, or the file that is there; BAD_FILE is well."""
    try:
        read_header(folder / "x.gguf") if data is None else read(folder, data)
    except LlmrunError as error:
        if error.kind is not BAD_FILE:
            raise


fuzz = settings(max_examples=300, deadline=1000, suppress_health_check=[HealthCheck.function_scoped_fixture])


@fuzz
@given(data=st.binary(max_size=400), start=st.sampled_from([b"", b"GGUF", b"GGUF\x03\0\0\0"]))
def test_read_header_random_bytes_never_raise_anything_else(
    tmp_path: Path, data: bytes, start: bytes
) -> None:
    read_or_refuse(tmp_path, start + data)


@fuzz
@given(
    changes=st.lists(
        st.tuples(
            st.integers(0, 1 << 16),
            st.one_of(
                st.binary(min_size=1, max_size=8),
                st.sampled_from([b"\xff" * 8, b"\0" * 8, struct.pack("<Q", 1 << 62), struct.pack("<I", 9)]),
            ),
        ),
        min_size=1,
        max_size=4,
    ),
    cut=st.none() | st.integers(0, 1 << 16),
)
def test_read_header_mutated_header_never_raises_anything_else(
    tmp_path: Path, valid: bytes, changes: list[tuple[int, bytes]], cut: int | None
) -> None:
    data = bytearray(valid)
    for at, change in changes:
        # Most bytes are vocabulary; half the changes go to the first and last kilobyte, where counts are.
        place = at % len(data) if at % 2 else (at % 1024 if at % 4 else len(data) - 1 - at % 1024)
        data[place : place + len(change)] = change
    read_or_refuse(tmp_path, bytes(data if cut is None else data[: cut % len(data)]))


def test_parse_header_stream_gives_what_the_file_does(valid: bytes, tmp_path: Path) -> None:
    whole = read(tmp_path, valid)
    assert parse_header(Forward(io.BytesIO(valid)), None, "a stream") == whole
    trickle = Trickle(valid)
    assert parse_header(Forward(trickle), len(valid), "a stream") == whole


class Trickle:
    """A stream that gives at most seven bytes at a time, and can do nothing else."""

    def __init__(self, data: bytes) -> None:
        self._file = io.BytesIO(data)

    def read(self, count: int, /) -> bytes:
        return self._file.read(min(count, 7))


def test_parse_header_ranges_fetch_only_the_header(valid: bytes, tmp_path: Path) -> None:
    data = valid + bytes(50 << 20)
    asked: list[tuple[int, int]] = []

    def fetch(start: int, end: int) -> bytes:
        asked.append((start, end))
        return data[start:end]

    reader = Ranges(fetch, len(data))
    assert parse_header(reader, len(data), "x").metadata == read(tmp_path, valid).metadata
    assert asked == [(0, 256 << 10)]


def test_parse_header_faults_of_streams_and_ranges_are_bad_files(valid: bytes) -> None:
    short = Ranges(lambda start, end: valid[start : end - 1], len(valid))
    endless = struct.pack("<IQ", 8, 1 << 20) + bytes(8 << 20)
    array = header(pairs=(pair("k", ARRAY, endless),))
    cases = [
        (Forward(io.BytesIO(valid[:100])), None),
        (Forward(io.BytesIO(b"GGML")), None),
        (Forward(io.BytesIO(array[:-100_000])), None),
        (short, len(valid)),
        (Ranges(lambda start, end: bytes(end - start), 1 << 40), 1 << 40),
    ]
    for reader, size in cases:
        with pytest.raises(LlmrunError) as caught:
            parse_header(reader, size, "it")
        assert caught.value.kind is BAD_FILE


def test_ranges_stop_at_the_bound() -> None:
    reader = Ranges(lambda start, end: bytes(end - start), 1 << 40)

    def read_all() -> None:
        while reader.read(1 << 20):
            pass

    with pytest.raises(LlmrunError, match="longer than 64 MB"):
        read_all()


@fuzz
@given(data=st.binary(max_size=400), start=st.sampled_from([b"", b"GGUF", b"GGUF\x03\0\0\0"]))
def test_parse_header_stream_of_random_bytes_never_raises_anything_else(data: bytes, start: bytes) -> None:
    try:
        parse_header(Forward(io.BytesIO(start + data)), None, "it")
    except LlmrunError as error:
        if error.kind is not BAD_FILE:
            raise


def test_read_header_file_that_is_written_again_is_read_again(
    valid: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(valid)
    monkeypatch.setattr(time, "time_ns", lambda: path.stat().st_ctime_ns + 3 * 10**9)
    assert read_header(path).text("general.architecture") == "llama"
    path.write_bytes(valid.replace(b"llama", b"qwen2"))
    later = path.stat().st_mtime_ns + 10**9  # however coarse the file system's times are
    os.utime(path, ns=(later, later))
    assert read_header(path).text("general.architecture") == "qwen2"


def test_read_header_file_just_written_is_not_remembered(
    valid: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(valid)
    monkeypatch.setattr(time, "time_ns", lambda: path.stat().st_ctime_ns + 10**9)
    assert read_header(path) is not read_header(path)


def test_read_header_settled_file_is_parsed_once(
    valid: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(valid)
    monkeypatch.setattr(time, "time_ns", lambda: path.stat().st_ctime_ns + 3 * 10**9)
    assert read_header(path) is read_header(path)
    path.unlink()
    with pytest.raises(LlmrunError) as missing:
        read_header(path)
    assert missing.value.kind is NOT_FOUND
