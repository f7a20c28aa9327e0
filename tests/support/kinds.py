"""Tiny models of every kind that llama.cpp tells apart: real architectures, random weights, loaded in
milliseconds. Shapes are as numpy has them, rows first; names of tensors and keys are llama.cpp's.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np

from tests.support import tiny

EMBD, HEAD, FF, CTX, EXPERTS = 64, 32, 128, 512, 4
HEADS = EMBD // HEAD
Shapes = dict[str, tuple[int, ...]]
Describe = Callable[[gguf.GGUFWriter], None]
Make = Callable[[Path], Path]


def write(
    path: Path,
    architecture: str,
    layers: list[Shapes],
    describe: Describe,
    *,
    others: Shapes | None = None,
    words: bool = False,
    template: str | None = tiny.CHATML,
    ctx: int = CTX,
) -> Path:
    """A model with these tensors in each layer and `others` outside them, of a byte-level vocabulary, or with
    `words` one as BERT has."""
    rng = np.random.default_rng(0)
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_context_length(ctx)
    writer.add_embedding_length(EMBD)
    writer.add_block_count(len(layers))
    writer.add_feed_forward_length(FF)
    writer.add_head_count(HEADS)
    writer.add_key_length(HEAD)
    writer.add_value_length(HEAD)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_layer_norm_eps(1e-5)
    describe(writer)
    vocab = add_words(writer) if words else tiny.add_vocabulary(writer, template)
    shapes: Shapes = {"token_embd.weight": (vocab, EMBD), **(others or {"output_norm.weight": (EMBD,)})}
    for index, layer in enumerate(layers):
        shapes |= {f"blk.{index}.{name}": shape for name, shape in layer.items()}
    for name, shape in shapes.items():
        writer.add_tensor(name, _weights(name, shape, rng))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _weights(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Numbers that keep a layer's output near its input's size: a state decays, a norm keeps."""
    if name.endswith("ssm_a"):
        numbers = -rng.uniform(0.5, 1.5, shape)
    elif name.endswith(("norm.weight", "ssm_d")):
        numbers = np.ones(shape)
    elif name.endswith(".bias"):
        numbers = 0.1 * rng.standard_normal(shape)
    else:
        numbers = rng.standard_normal(shape) / np.sqrt(shape[-1])
    return numbers.astype(np.float32)


def add_words(writer: gguf.GGUFWriter) -> int:
    """BERT's tokenizer, with a token for each letter and digit, at the start of a word and inside one."""
    letters = "abcdefghijklmnopqrstuvwxyz0123456789.,?!"
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *(f"▁{c}" for c in letters), *letters]
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_type_count(2)
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.CONTROL] * 4 + [gguf.TokenType.NORMAL] * (len(tokens) - 4))
    writer.add_bos_token_id(2)
    writer.add_eos_token_id(3)
    writer.add_sep_token_id(3)
    writer.add_unk_token_id(1)
    writer.add_pad_token_id(0)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(True)
    writer.add_add_sep_token(False)
    writer.add_mask_token_id(1)
    return len(tokens)


def attention(kv_heads: int, *, doubled: int = 1, normed: bool = True) -> Shapes:
    norms: Shapes = {"attn_q_norm.weight": (HEAD,), "attn_k_norm.weight": (HEAD,)}
    return {
        "attn_q.weight": (doubled * HEADS * HEAD, EMBD),
        "attn_k.weight": (kv_heads * HEAD, EMBD),
        "attn_v.weight": (kv_heads * HEAD, EMBD),
        "attn_output.weight": (EMBD, HEADS * HEAD),
        **(norms if normed else {}),
    }


FEED: Shapes = {"ffn_gate.weight": (FF, EMBD), "ffn_up.weight": (FF, EMBD), "ffn_down.weight": (EMBD, FF)}


def norms(*names: str) -> Shapes:
    return {f"{name}.weight": (EMBD,) for name in names}


def llama(path: Path) -> Path:
    """Grouped-query attention."""
    return tiny.write_llama(path, tiny.Shape(embd=128, layers=3, heads=4, kv_heads=2))


def gemma3(path: Path) -> Path:
    """Five layers with a sliding window to one without."""

    def describe(writer: gguf.GGUFWriter) -> None:
        writer.add_head_count_kv(1)
        writer.add_sliding_window(64)

    layer = {**attention(1), **FEED, **norms("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm")}
    return write(path, "gemma3", [layer] * 6, describe)


def mamba(path: Path) -> Path:
    """A state for each sequence and no attention."""
    inner, state, rank, kernel = 2 * EMBD, 16, 4, 4

    def describe(writer: gguf.GGUFWriter) -> None:
        writer.add_head_count_kv(0)
        writer.add_ssm_conv_kernel(kernel)
        writer.add_ssm_inner_size(inner)
        writer.add_ssm_state_size(state)
        writer.add_ssm_time_step_rank(rank)

    layer: Shapes = {
        **norms("attn_norm"),
        "ssm_in.weight": (2 * inner, EMBD),
        "ssm_conv1d.weight": (inner, kernel),
        "ssm_conv1d.bias": (inner,),
        "ssm_x.weight": (rank + 2 * state, inner),
        "ssm_dt.weight": (inner, rank),
        "ssm_dt.bias": (inner,),
        "ssm_a": (inner, state),
        "ssm_d": (inner,),
        "ssm_out.weight": (EMBD, inner),
    }
    return write(path, "mamba", [layer] * 2, describe)


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
    layers = [{**shared, **convolution}, {**shared, **attention(1)}] * 2
    return write(path, "lfm2", layers, describe, others=norms("token_embd_norm"))


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


def qwen3moe(path: Path) -> Path:
    """Four experts, two for each token."""

    def describe(writer: gguf.GGUFWriter) -> None:
        writer.add_head_count_kv(1)
        writer.add_expert_count(EXPERTS)
        writer.add_expert_used_count(2)
        writer.add_expert_feed_forward_length(FF)

    experts: Shapes = {
        "ffn_gate_inp.weight": (EXPERTS, EMBD),
        "ffn_gate_exps.weight": (EXPERTS, FF, EMBD),
        "ffn_up_exps.weight": (EXPERTS, FF, EMBD),
        "ffn_down_exps.weight": (EXPERTS, EMBD, FF),
    }
    layer = {**attention(1), **experts, **norms("attn_norm", "ffn_norm")}
    return write(path, "qwen3moe", [layer] * 2, describe)


WRITERS: dict[str, Make] = {
    "full attention": llama,
    "sliding window": gemma3,
    "recurrent": mamba,
    "hybrid, convolutions": lfm2,
    "hybrid, delta nets": qwen35,
    "mixture of experts": qwen3moe,
}
"""What writes text."""


def bert(path: Path, pooling: gguf.PoolingType, labels: tuple[str, ...] = (), ctx: int = CTX) -> Path:
    """An encoder; with pooling RANK one with a classification head."""
    classes = max(1, len(labels))

    def describe(writer: gguf.GGUFWriter) -> None:
        writer.add_head_count_kv(HEADS)
        writer.add_causal_attention(False)
        writer.add_pooling_type(pooling)
        if labels:
            writer.add_classifier_output_labels(labels)

    layer: Shapes = {
        **attention(HEADS, normed=False),
        "attn_q.bias": (EMBD,),
        "attn_k.bias": (EMBD,),
        "attn_v.bias": (EMBD,),
        "attn_output.bias": (EMBD,),
        **norms("attn_output_norm", "layer_output_norm"),
        "attn_output_norm.bias": (EMBD,),
        "layer_output_norm.bias": (EMBD,),
        "ffn_up.weight": (FF, EMBD),
        "ffn_up.bias": (FF,),
        "ffn_down.weight": (EMBD, FF),
        "ffn_down.bias": (EMBD,),
    }
    others: Shapes = {
        **norms("token_embd_norm"),
        "token_embd_norm.bias": (EMBD,),
        "token_types.weight": (2, EMBD),
        "position_embd.weight": (ctx, EMBD),
    }
    if pooling == gguf.PoolingType.RANK:
        others |= {"cls.weight": (EMBD, EMBD), "cls.bias": (EMBD,)}
        others |= {"cls.output.weight": (classes, EMBD), "cls.output.bias": (classes,)}
    return write(path, "bert", [layer] * 2, describe, others=others, words=True, ctx=ctx)


def qwen3(path: Path, pooling: gguf.PoolingType, labels: tuple[str, ...] = ()) -> Path:
    """A decoder that embeds; with pooling RANK one that says yes or no of a query and a document."""

    def describe(writer: gguf.GGUFWriter) -> None:
        writer.add_head_count_kv(1)
        writer.add_pooling_type(pooling)
        if labels:
            writer.add_classifier_output_labels(labels)

    layer = {**attention(1), **FEED, **norms("attn_norm", "ffn_norm")}
    others = norms("output_norm")
    if labels:
        others |= {"cls.output.weight": (len(labels), EMBD)}
    return write(path, "qwen3", [layer] * 2, describe, others=others)


EMBEDDERS: dict[str, Make] = {
    "encoder, mean": lambda path: bert(path, gguf.PoolingType.MEAN),
    "encoder, cls": lambda path: bert(path, gguf.PoolingType.CLS),
    "decoder, last": lambda path: qwen3(path, gguf.PoolingType.LAST),
    "decoder, mean": lambda path: qwen3(path, gguf.PoolingType.MEAN),
}
"""What makes vectors and nothing else."""

RANKERS: dict[str, Make] = {
    "encoder": lambda path: bert(path, gguf.PoolingType.RANK),
    "decoder": lambda path: qwen3(path, gguf.PoolingType.RANK, ("yes", "no")),
}


def t5(path: Path) -> Path:
    """An encoder and a decoder."""

    def describe(writer: gguf.GGUFWriter) -> None:
        writer.add_head_count_kv(HEADS)
        writer.add_relative_attn_buckets_count(8)

    square = (EMBD, EMBD)
    block: Shapes = {
        **{f"attn_{part}.weight": square for part in "qkvo"},
        **FEED,
        **norms("attn_norm", "ffn_norm"),
        "attn_rel_b.weight": (8, HEADS),
    }
    cross: Shapes = {
        **{f"cross_attn_{part}.weight": square for part in "qkvo"},
        **norms("cross_attn_norm"),
    }
    others = norms("enc.output_norm", "dec.output_norm")
    others |= {f"enc.blk.0.{name}": shape for name, shape in block.items()}
    others |= {f"dec.blk.0.{name}": shape for name, shape in {**block, **cross}.items()}
    return write(path, "t5", [{}], describe, others=others)


def dream(path: Path) -> Path:
    """Writes by diffusion."""

    def describe(writer: gguf.GGUFWriter) -> None:
        writer.add_head_count_kv(1)

    layer = {**attention(1, normed=False), **FEED, **norms("attn_norm", "ffn_norm")}
    return write(path, "dream", [layer], describe)


UNSERVABLE: dict[str, Make] = {"encoder": t5, "diffusion": dream}
"""What a model is refused for -> one that is."""
