"""Writes tiny GGUF models with random weights: real files of a real architecture, loaded in milliseconds.

The vocabulary is byte-level, with ChatML's control tokens, so any text can be tokenised.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import gguf
import gguf.quants
import numpy as np

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
CONTROL = {"<unk>": 0, "<s>": 1, "</s>": 2, "<|im_start|>": 3, "<|im_end|>": 4}
FIRST_BYTE = len(CONTROL)


@dataclass(frozen=True)
class Shape:
    """Sizes of the model; `seed` decides its weights."""

    ctx: int = 512
    embd: int = 64
    layers: int = 2
    heads: int = 2
    kv_heads: int = 1
    ff: int = 128
    seed: int = 0
    template: str | None = CHATML
    scale: float = 0.5
    fim: bool = False
    quant: gguf.GGMLQuantizationType = gguf.GGMLQuantizationType.F32


DEFAULT = Shape()


def write_llama(path: Path, shape: Shape = DEFAULT) -> Path:
    """A llama-architecture model at `path`. Greedy output is random but the same every time."""
    rng = np.random.default_rng(shape.seed)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name(path.stem)
    writer.add_context_length(shape.ctx)
    writer.add_embedding_length(shape.embd)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.ff)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(shape.embd // shape.heads)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    vocab = add_vocabulary(writer, shape.template)
    for number, name in enumerate(("pre", "suf", "mid") if shape.fim else ()):
        writer.add_uint32(f"tokenizer.ggml.fim_{name}_token_id", vocab - 3 + number)

    def tensor(name: str, *size: int) -> None:
        weights = rng.standard_normal(size) * shape.scale / np.sqrt(size[-1])
        data = gguf.quants.quantize(weights.astype(np.float32), shape.quant)
        writer.add_tensor(name, data, raw_dtype=shape.quant)

    def norm(name: str) -> None:
        writer.add_tensor(name, np.ones(shape.embd, np.float32))

    kv = shape.embd // shape.heads * shape.kv_heads
    tensor("token_embd.weight", vocab, shape.embd)
    for i in range(shape.layers):
        norm(f"blk.{i}.attn_norm.weight")
        tensor(f"blk.{i}.attn_q.weight", shape.embd, shape.embd)
        tensor(f"blk.{i}.attn_k.weight", kv, shape.embd)
        tensor(f"blk.{i}.attn_v.weight", kv, shape.embd)
        tensor(f"blk.{i}.attn_output.weight", shape.embd, shape.embd)
        norm(f"blk.{i}.ffn_norm.weight")
        tensor(f"blk.{i}.ffn_gate.weight", shape.ff, shape.embd)
        tensor(f"blk.{i}.ffn_up.weight", shape.ff, shape.embd)
        tensor(f"blk.{i}.ffn_down.weight", shape.embd, shape.ff)
    norm("output_norm.weight")
    tensor("output.weight", vocab, shape.embd)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_lora(
    path: Path, shape: Shape = DEFAULT, *, rank: int = 4, alpha: float = 8.0, seed: int = 1
) -> Path:
    """A LoRA adapter at `path` for the model of `shape`, strong enough to change its greedy text."""
    rng = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_type(gguf.GGUFType.ADAPTER)
    writer.add_string(gguf.Keys.Adapter.TYPE, "lora")
    writer.add_float32(gguf.Keys.Adapter.LORA_ALPHA, alpha)

    def pair(name: str, rows: int, columns: int) -> None:
        for part, size in (("lora_a", (rank, columns)), ("lora_b", (rows, rank))):
            data = rng.standard_normal(size) / np.sqrt(size[-1])
            writer.add_tensor(f"{name}.{part}", data.astype(np.float32))

    for i in range(shape.layers):
        pair(f"blk.{i}.attn_q.weight", shape.embd, shape.embd)
        pair(f"blk.{i}.ffn_down.weight", shape.embd, shape.ff)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def add_vocabulary(writer: gguf.GGUFWriter, template: str | None) -> int:
    """The byte-level vocabulary; how many tokens it has."""
    tokens = [*CONTROL, *(f"<0x{i:02X}>" for i in range(256)), "▁", "▁the", "▁a", "ing", "er"]
    types = [gguf.TokenType.UNKNOWN] + [gguf.TokenType.CONTROL] * (FIRST_BYTE - 1)
    types += [gguf.TokenType.BYTE] * 256
    types += [gguf.TokenType.NORMAL] * (len(tokens) - len(types))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([-float(i) for i in range(len(tokens))])
    writer.add_token_types(types)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_eot_token_id(4)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)
    if template is not None:
        writer.add_chat_template(template)
    return len(tokens)


def write_probe(path: Path) -> Path:
    """What llmrun/llama/probe.gguf is: the smallest model that llama.cpp repacks for AMX."""
    return write_llama(
        path, Shape(ctx=64, layers=1, ff=64, template=None, quant=gguf.GGMLQuantizationType.Q8_0)
    )
