from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from llmrun.store.anatomy import Anatomy, anatomy
from llmrun.store.gguf import read_header
from tests.support.tiny import Shape, write_llama


def made(
    folder: Path, architecture: str, tensors: dict[str, tuple[int, ...]], **facts: int | bool | list[int]
) -> Anatomy:
    """The anatomy of a file with these tensors (names without `.weight`, shapes as GGUF has them) and keys
    (`__` for a dot)."""
    path = folder / "made.gguf"
    writer = gguf.GGUFWriter(path, architecture)
    for key, value in facts.items():
        name = f"{architecture}.{key.replace('__', '.')}"
        if isinstance(value, bool):
            writer.add_bool(name, value)
        elif isinstance(value, list):
            writer.add_array(name, value)
        else:
            writer.add_uint32(name, value)
    for name, shape in tensors.items():
        writer.add_tensor(f"{name}.weight", np.zeros(shape[::-1], np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return anatomy([read_header(path)])


def attention(layer: int, embd: int, k: int, v: int | None = None) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {f"blk.{layer}.attn_k": (embd, k)}
    return shapes if v == 0 else {**shapes, f"blk.{layer}.attn_v": (embd, v or k)}


def test_anatomy_counts_the_bytes_that_the_file_has(tmp_path: Path) -> None:
    path = write_llama(tmp_path / "a.gguf", Shape(embd=64, layers=3, heads=4, kv_heads=2, ff=128))
    header = read_header(path)
    sizes = anatomy([header])
    assert sizes.weights == sum(tensor.size for tensor in header.tensors)
    assert (len(sizes.layers), sizes.embd, sizes.ff, sizes.vocab) == (3, 64, 128, 266)
    assert not sizes.tied
    embedding = next(t.size for t in header.tensors if t.name == "token_embd.weight")
    assert sizes.active == sizes.weights - embedding


@pytest.mark.parametrize(
    ("kv_type", "token"),
    [("f32", 256), ("f16", 128), ("bf16", 128), ("q8_0", 68), ("q4_0", 36), ("iq4_nl", 36)],
)
def test_kv_bytes_of_grouped_query_attention(tmp_path: Path, kv_type: str, token: int) -> None:
    # 2 KV heads of 16 numbers: 32 numbers each of K and V, one block of the quantised types
    path = write_llama(tmp_path / "a.gguf", Shape(embd=64, layers=3, heads=4, kv_heads=2))
    assert anatomy([read_header(path)]).kv_bytes(512, kv_type) == 512 * 3 * token


def test_kv_bytes_contexts_are_rounded_up_as_llama_cpp_does(tmp_path: Path) -> None:
    sizes = made(tmp_path, "llama", attention(0, 64, 32))
    assert sizes.kv_bytes(1, "f16") == sizes.kv_bytes(256, "f16") == 256 * 128
    assert sizes.kv_bytes(257, "f16") == 512 * 128


def test_kv_bytes_layers_have_widths_of_their_own(tmp_path: Path) -> None:
    """Sliding-window layers with other heads than the full ones (Gemma 4), V taken from K."""
    tensors = {**attention(0, 64, 32), **attention(1, 64, 128), **attention(2, 64, 64, 0)}
    sizes = made(tmp_path, "gemma4", tensors, attention__sliding_window=512)
    assert [(layer.k, layer.v) for layer in sizes.layers] == [(32, 32), (128, 128), (64, 64)]


def test_kv_bytes_layers_that_share_a_cache_have_none(tmp_path: Path) -> None:
    tensors = {k: v for i in range(4) for k, v in attention(i, 64, 32).items()}
    sizes = made(tmp_path, "gemma4", tensors, attention__shared_kv_layers=3)
    assert [layer.k for layer in sizes.layers] == [32, 0, 0, 0]


def test_kv_bytes_fused_projections_are_parted_by_heads(tmp_path: Path) -> None:
    sizes = made(
        tmp_path,
        "phi3",
        {"blk.0.attn_qkv": (64, 64 + 2 * 32)},
        embedding_length=64,
        attention__head_count=4,
        attention__head_count_kv=2,
    )
    assert (sizes.layers[0].k, sizes.layers[0].v) == (32, 32)


def test_kv_bytes_latent_attention_keeps_one_compressed_row(tmp_path: Path) -> None:
    sizes = made(
        tmp_path,
        "deepseek2",
        {"blk.0.attn_kv_a_mqa": (64, 576)},
        attention__key_length=576,
        attention__key_length_mla=192,
        attention__head_count_kv=1,
    )
    assert (sizes.layers[0].k, sizes.layers[0].v) == (576, 0)


def test_state_bytes_hybrids_hold_a_state_and_kv_only_where_they_attend(tmp_path: Path) -> None:
    """Qwen3.5: three gated delta layers to one with attention."""
    recurrent = {
        name: s
        for i in range(3)
        for name, s in ((f"blk.{i}.attn_qkv", (64, 192)), (f"blk.{i}.ssm_out", (64, 64)))
    }
    sizes = made(
        tmp_path,
        "qwen35",
        {**recurrent, **attention(3, 64, 32)},
        ssm__conv_kernel=4,
        ssm__inner_size=64,
        ssm__state_size=16,
        ssm__group_count=2,
    )
    state = 3 * (64 + 2 * 2 * 16) + 16 * 64
    assert [layer.state for layer in sizes.layers] == [state, state, state, 0]
    assert sizes.state_bytes(10) == 4 * 10 * 3 * state
    assert sizes.kv_bytes(256, "f16") == 256 * 128


@pytest.mark.parametrize(
    ("architecture", "tensor", "facts", "state"),
    [
        ("lfm2", "shortconv.conv", {"embedding_length": 64, "shortconv__l_cache": 3}, 128),
        (
            "rwkv7",
            "time_mix_key",
            {"embedding_length": 64, "wkv__head_size": 16, "token_shift_count": 2},
            1152,
        ),
    ],
)
def test_state_bytes_of_other_recurrent_layers(
    tmp_path: Path, architecture: str, tensor: str, facts: dict[str, Any], state: int
) -> None:
    sizes = made(tmp_path, architecture, {f"blk.0.{tensor}": (64, 64)}, **facts)
    assert (sizes.layers[0].state, sizes.layers[0].k) == (state, 0)


def test_active_counts_only_the_experts_that_are_used(tmp_path: Path) -> None:
    tensors = {"blk.0.ffn_up_exps": (32, 32, 8), "blk.0.ffn_gate_inp": (32, 8), "token_embd": (32, 64)}
    sizes = made(tmp_path, "qwen3moe", tensors, expert_count=8, expert_used_count=2)
    assert sizes.weights == 4 * (32 * 32 * 8 + 32 * 8 + 32 * 64)
    assert sizes.active == 4 * (32 * 32 * 2 + 32 * 8 + 32 * 64)


def test_anatomy_encoders_have_no_cache(tmp_path: Path) -> None:
    sizes = made(tmp_path, "bert", attention(0, 64, 64), attention__causal=False)
    assert sizes.kv_bytes(512, "f16") == 0
    assert sizes.encodes


def test_anatomy_decoder_that_looks_both_ways_has_a_cache_all_the_same(tmp_path: Path) -> None:
    sizes = made(tmp_path, "qwen2", attention(0, 64, 64), attention__causal=False)
    assert sizes.kv_bytes(512, "f16") == 512 * 2 * (64 + 64)
    assert not sizes.encodes
