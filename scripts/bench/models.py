"""The models of the tables, made once, in `.cache/bench/`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import gguf
import numpy as np
from peer import CACHE

from llmrun.config import DEFAULT_MODEL, Paths
from llmrun.store import Store

# Of Llama 3.2 1B, but for its vocabulary, which is the default model's.
EMBD, FF, HEADS, KV_HEADS, LAYERS, CTX = 2048, 8192, 32, 8, 16, 8192


def default() -> Path:
    """The default model as it is pulled."""
    return Store(Paths.find()).resolve(DEFAULT_MODEL).path


def requantised(kind: str) -> Path:
    """The default model in another type."""
    return _quantised(default(), f"smollm2-135m-{kind}", kind, "--again")


def billion() -> Path:
    """A llama of a billion parameters in Q4_0, with random weights and the default model's vocabulary."""
    target = CACHE / "random-1b-q4_0.gguf"
    if not target.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            plain = Path(folder) / "random-1b.gguf"
            _write_random(plain)
            _quantised(plain, "random-1b-q4_0", "q4_0")
    return target


def _quantised(source: Path, name: str, kind: str, *flags: str) -> Path:
    """What `llmrun quantize` makes of a file, in a home of its own."""
    target = CACHE / f"{name}.gguf"
    if not target.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as home:
            env = {**os.environ, "LLMRUN_HOME": home}
            command = [sys.executable, "-m", "llmrun", "quantize", str(source), kind, "-o", name, *flags]
            subprocess.run(command, env=env, check=True)
            made = Store(Paths.find(env)).resolve(name).path
            shutil.move(made.resolve(), target)
    return target


def _write_random(path: Path) -> None:
    rng = np.random.default_rng(0)
    some = (rng.standard_normal(1 << 20) / np.sqrt(EMBD)).astype(np.float16)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CTX)
    writer.add_embedding_length(EMBD)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FF)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(EMBD // HEADS)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    vocab = _copy_tokenizer(gguf.GGUFReader(default()), writer)

    def tensor(name: str, rows: int, columns: int) -> None:
        writer.add_tensor(f"{name}.weight", np.resize(some, (rows, columns)))

    kv = EMBD // HEADS * KV_HEADS
    tensor("token_embd", vocab, EMBD)
    for i in range(LAYERS):
        for norm in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{i}.{norm}.weight", np.ones(EMBD, np.float32))
        for part, rows, columns in (
            ("attn_q", EMBD, EMBD),
            ("attn_k", kv, EMBD),
            ("attn_v", kv, EMBD),
            ("attn_output", EMBD, EMBD),
            ("ffn_gate", FF, EMBD),
            ("ffn_up", FF, EMBD),
            ("ffn_down", EMBD, FF),
        ):
            tensor(f"blk.{i}.{part}", rows, columns)
    writer.add_tensor("output_norm.weight", np.ones(EMBD, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _copy_tokenizer(source: gguf.GGUFReader, writer: gguf.GGUFWriter) -> int:
    """Take over every field of the tokenizer; how many tokens it has."""
    for name, field in source.fields.items():
        if name.startswith("tokenizer."):
            inner = field.types[1] if len(field.types) > 1 else None
            writer.add_key_value(name, field.contents(), field.types[0], inner)
    return len(source.fields["tokenizer.ggml.tokens"].data)
