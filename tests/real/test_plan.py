"""The memory plan against the process it speaks of: a runner's peak is within a tenth of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import gguf
import numpy as np
import pytest

from llmrun.runner.frames import (
    PREFIX_SIZE,
    Events,
    Load,
    Ready,
    Shutdown,
    Submit,
    Up,
    decode_up,
    encode,
    frame_length,
)
from llmrun.store.anatomy import anatomy
from llmrun.store.attention import attention, scores
from llmrun.store.gguf import read_header
from llmrun.store.hardware import this_machine
from llmrun.store.plan import plan
from llmrun.types import Finished, GenerateRequest, Options

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(sys.platform != "linux", reason="VmHWM is Linux's"),
]
PROMPT = tuple(5 + (i * 7) % 200 for i in range(600))  # more than one batch
TOLERANCE = 0.1


def write_billion(path: Path) -> Path:
    """A llama of a billion weights in Q4_0: a few random blocks, repeated."""
    kind, embd, layers, heads, kv_heads, ff, vocab = (
        gguf.GGMLQuantizationType.Q4_0,
        2048,
        16,
        32,
        8,
        8192,
        32000,
    )
    block, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = np.random.default_rng(0).integers(0, 256, (4096, size), dtype=np.uint8)
    blocks[:, :2] = np.frombuffer(np.float16(0.01).tobytes(), np.uint8)  # their scale
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(8192)
    writer.add_embedding_length(embd)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(ff)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256))]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens + [f"t{i}" for i in range(vocab - len(tokens))])
    writer.add_token_scores([0.0] * vocab)
    writer.add_token_types([2, 3, 3] + [6] * 256 + [1] * (vocab - len(tokens)))

    def tensor(name: str, rows: int, columns: int) -> None:
        data = np.resize(blocks, (rows * columns // block, size)).reshape(rows, columns // block * size)
        writer.add_tensor(f"{name}.weight", data, raw_dtype=kind)

    def norm(name: str) -> None:
        writer.add_tensor(f"{name}.weight", np.ones(embd, np.float32))

    tensor("token_embd", vocab, embd)
    for i in range(layers):
        norm(f"blk.{i}.attn_norm")
        tensor(f"blk.{i}.attn_q", embd, embd)
        tensor(f"blk.{i}.attn_k", embd // heads * kv_heads, embd)
        tensor(f"blk.{i}.attn_v", embd // heads * kv_heads, embd)
        tensor(f"blk.{i}.attn_output", embd, embd)
        norm(f"blk.{i}.ffn_norm")
        tensor(f"blk.{i}.ffn_gate", ff, embd)
        tensor(f"blk.{i}.ffn_up", ff, embd)
        tensor(f"blk.{i}.ffn_down", embd, ff)
    norm("output_norm")
    tensor("output", vocab, embd)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@contextmanager
def runner() -> Iterator[tuple[subprocess.Popen[bytes], BinaryIO, BinaryIO]]:
    command = [sys.executable, "-m", "llmrun.runner"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdin
        assert process.stdout
        try:
            yield process, process.stdin, process.stdout
        finally:
            process.kill()


def frames(stream: BinaryIO) -> Iterator[Up]:
    while prefix := stream.read(PREFIX_SIZE):
        yield decode_up(stream.read(frame_length(prefix)))


def peak_of(path: Path, ctx: int, kv_type: str, prompt: Sequence[int]) -> int:
    """Bytes that a runner held at most while it answered one prompt."""
    with runner() as (process, stdin, stdout):
        coming = frames(stdout)
        stdin.write(encode(Load(name="m", path=str(path), ctx=ctx, kv_type=kv_type, threads=1)))
        stdin.flush()
        assert any(isinstance(frame, Ready) for frame in coming)
        request = GenerateRequest(id="r", model="m", prompt=tuple(prompt), options=Options(max_tokens=2))
        stdin.write(encode(Submit(request)))
        stdin.flush()
        assert any(
            isinstance(event, Finished)
            for frame in coming
            if isinstance(frame, Events)
            for _, event in frame.items
        )
        status = Path(f"/proc/{process.pid}/status").read_text()
        stdin.write(encode(Shutdown()))
        stdin.flush()
        return 1024 * int(status.split("VmHWM:")[1].split()[0])


def check(path: Path, ctx: int, kv_type: str, prompt: Sequence[int] = PROMPT) -> None:
    model = anatomy([read_header(path)])
    planned = plan(model, this_machine(), ctx, kv_type).peak
    way = attention(model, "auto", ctx, kv_type, gpu=False, unified=True)
    if way.flash is False:  # the memory for scores is touched as far as the prompt goes
        planned -= scores(model, way.rows, ctx) - scores(model, min(way.rows, len(prompt)), len(prompt))
    assert planned == pytest.approx(peak_of(path, ctx, kv_type, prompt), rel=TOLERANCE)


@pytest.mark.parametrize("kv_type", ["f16", "q8_0"])
@pytest.mark.parametrize("ctx", [1024, 4096, 8192])
def test_plan_of_the_default_model_is_its_measured_peak(model_path: Path, ctx: int, kv_type: str) -> None:
    check(model_path, ctx, kv_type)


@pytest.fixture(scope="module")
def billion(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_billion(tmp_path_factory.mktemp("billion") / "1b.gguf")


@pytest.mark.parametrize("kv_type", ["f16", "q8_0"])
@pytest.mark.parametrize("ctx", [1024, 4096, 8192])
def test_plan_of_a_billion_weights_is_its_measured_peak(billion: Path, ctx: int, kv_type: str) -> None:
    check(billion, ctx, kv_type, PROMPT[:160])
