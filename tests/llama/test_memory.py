"""What `store.anatomy` reads from a header against what llama.cpp allocates, by its own log."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest

from llmrun.llama import Context, ContextSettings, Model
from llmrun.store.anatomy import anatomy
from llmrun.store.gguf import read_header
from tests.support import tiny

EMBD, HEAD, FF, SLOTS, CTX = 64, 32, 128, 64, 512
MIB = 1 << 20
Shapes = dict[str, tuple[int, ...]]


def write(
    path: Path, architecture: str, layers: list[Shapes], describe: Callable[[gguf.GGUFWriter], None]
) -> Path:
    """A model of zeros with these tensors in each layer; shapes as numpy has them, rows first."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_context_length(CTX)
    writer.add_embedding_length(EMBD)
    writer.add_block_count(len(layers))
    writer.add_feed_forward_length(FF)
    writer.add_head_count(EMBD // HEAD)
    writer.add_key_length(HEAD)
    writer.add_value_length(HEAD)
    writer.add_layer_norm_rms_eps(1e-5)
    describe(writer)
    vocab = tiny._add_vocabulary(writer, None)
    tensors: Shapes = {"token_embd.weight": (vocab, EMBD)}
    tensors["token_embd_norm.weight" if architecture == "lfm2" else "output_norm.weight"] = (EMBD,)
    for index, layer in enumerate(layers):
        tensors |= {f"blk.{index}.{name}": shape for name, shape in layer.items()}
    for name, shape in tensors.items():
        writer.add_tensor(name, np.zeros(shape, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def attention(kv_heads: int, *, doubled: int = 1) -> Shapes:
    heads = EMBD // HEAD
    return {
        "attn_q.weight": (doubled * heads * HEAD, EMBD),
        "attn_k.weight": (kv_heads * HEAD, EMBD),
        "attn_v.weight": (kv_heads * HEAD, EMBD),
        "attn_output.weight": (EMBD, heads * HEAD),
        "attn_q_norm.weight": (HEAD,),
        "attn_k_norm.weight": (HEAD,),
    }


FEED: Shapes = {"ffn_gate.weight": (FF, EMBD), "ffn_up.weight": (FF, EMBD), "ffn_down.weight": (EMBD, FF)}


def norms(*names: str) -> Shapes:
    return {f"{name}.weight": (EMBD,) for name in names}


def gemma3(path: Path) -> Path:
    """Five layers with a sliding window to one without."""

    def describe(writer: gguf.GGUFWriter) -> None:
        writer.add_head_count_kv(1)
        writer.add_sliding_window(64)

    layer = {**attention(1), **FEED, **norms("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm")}
    return write(path, "gemma3", [layer] * 6, describe)


def lfm2(path: Path) -> Path:
    """Short convolutions in every other layer."""

    def describe(writer: gguf.GGUFWriter) -> None:
        writer.add_head_count_kv([0, 1, 0, 1])
        writer.add_shortconv_l_cache(3)

    shared = {**FEED, **norms("attn_norm", "ffn_norm")}
    convolution: Shapes = {
        "shortconv.conv.weight": (EMBD, 3),
        "shortconv.in_proj.weight": (3 * EMBD, EMBD),
        "shortconv.out_proj.weight": (EMBD, EMBD),
    }
    return write(path, "lfm2", [{**shared, **convolution}, {**shared, **attention(1)}] * 2, describe)


def qwen35(path: Path) -> Path:
    """Three gated delta layers to one with attention."""
    values, keys, state, kernel = 4, 2, 16, 4

    def describe(writer: gguf.GGUFWriter) -> None:
        writer.add_head_count_kv(1)
        writer.add_rope_dimension_sections([8, 4, 4, 0])
        writer.add_ssm_conv_kernel(kernel)
        writer.add_ssm_inner_size(values * state)
        writer.add_ssm_state_size(state)
        writer.add_ssm_time_step_rank(values)
        writer.add_ssm_group_count(keys)

    shared = {**FEED, **norms("attn_norm", "post_attention_norm")}
    width = 2 * keys * state + values * state
    delta: Shapes = {
        "attn_qkv.weight": (width, EMBD),
        "attn_gate.weight": (values * state, EMBD),
        "ssm_conv1d.weight": (width, kernel),
        "ssm_dt.bias": (values,),
        "ssm_a": (values,),
        "ssm_beta.weight": (values, EMBD),
        "ssm_alpha.weight": (values, EMBD),
        "ssm_norm.weight": (state,),
        "ssm_out.weight": (EMBD, values * state),
    }
    layers = [{**shared, **delta}] * 3 + [{**shared, **attention(1, doubled=2)}]
    return write(path, "qwen35", layers, describe)


def llama(path: Path) -> Path:
    """Grouped-query attention."""
    return tiny.write_llama(path, tiny.Shape(embd=128, layers=3, heads=4, kv_heads=2))


@pytest.mark.parametrize("kv_type", ["f16", "q8_0"])
@pytest.mark.parametrize("make", [llama, gemma3, lfm2, qwen35])
def test_anatomy_gives_the_bytes_that_llama_cpp_allocates(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, make: Callable[[Path], Path], kv_type: str
) -> None:
    path = make(tmp_path / "model.gguf")
    sizes = anatomy([read_header(path)])
    model = Model(path)
    try:
        with caplog.at_level(logging.DEBUG, logger="llmrun.llama"):
            Context(model, ContextSettings(CTX, 64, SLOTS, 1, 1, kv_type))
    finally:
        model.close()
    assert sizes.kv_bytes(CTX, kv_type) == pytest.approx(logged("KV", caplog.text), abs=0.01 * MIB)
    assert sizes.state_bytes(SLOTS) == pytest.approx(logged("RS", caplog.text), abs=0.01 * MIB)


def logged(kind: str, text: str) -> float:
    """Bytes of all buffers of this kind that llama.cpp told of."""
    return MIB * sum(map(float, re.findall(rf"{kind} buffer size = +([\d.]+) MiB", text)))
