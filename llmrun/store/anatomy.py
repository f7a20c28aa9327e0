"""What of a model takes memory: its layers' weights, their KV cache, their recurrent state. Pure.

In: GGUF headers. Out: an `Anatomy`, in numbers that no machine has a part in (for that see `plan`).

One token in the KV cache of a layer is one row of K and one of V (llama.cpp, `src/llama-kv-cache.cpp`):

    bytes = cells × Σ over layers with attention of (row(k_width) + row(v_width)),   row(n) = n ÷ block × size

where `block` and `size` are the KV type's (`ggml`), and a width is KV heads × head size, which is what the
layer's own `attn_k` and `attn_v` tensors put out. So grouped-query attention (fewer KV heads,
https://arxiv.org/abs/2305.13245), layers with heads or head sizes of their own, and V taken from K are right
by construction. The other cases:

- sliding-window layers have as many cells as the others, as the runner asks for (`swa_full`): up to a
  window's length a prefix can be shared and cut
- recurrent layers (Mamba, RWKV, gated delta nets, short convolutions) hold a state of fixed size per sequence
  and no KV, layers with both (Falcon-H1) hold both (`llama-memory-recurrent.cpp`, `llama-hparams.cpp`)
- layers that use an earlier layer's cache (`attention.shared_kv_layers`), layers for multi-token prediction,
  and encoders have none
- multi-head latent attention keeps one compressed row and no V
- experts add weights and no KV; `active` counts those that one token reads
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llmrun.store.architectures import ENCODERS, WITHOUT_CACHE
from llmrun.store.ggml import TENSOR_TYPES
from llmrun.store.gguf import GGUFHeader, LongArray, Tensor

_Number = Callable[..., int]
_TYPES = {kind.name.lower(): kind for kind in TENSOR_TYPES.values()}
_LAYER = re.compile(r"blk\.(\d+)\.(.+)")
_RECURRENT = re.compile(r"(ssm_|shortconv\.|time_mix_)")
CELLS = 256  # llama.cpp rounds contexts up to a multiple of it
F32 = 4
# Its cache-less layers are fixed in llama.cpp's code (`src/models/gemma3n.cpp`), not in the file.
_LAYERS_WITH_KV = {"gemma3n": 20}


@dataclass(frozen=True)
class Layer:
    """`weights` in bytes; `k` and `v` in numbers per token; `state` in F32 numbers per sequence."""

    weights: int
    k: int
    v: int
    state: int


@dataclass(frozen=True)
class Anatomy:
    """A model's sizes. `tensors` are those of all files; `active` is how much of `weights` is read to compute
    one token; `embd` and `ff` are the widths of a layer's input and of its feed-forward part; `encodes`: a
    whole text at once, which is not kept; `heads`: of attention, in a layer."""

    layers: tuple[Layer, ...]
    tensors: tuple[Tensor, ...]
    active: int
    vocab: int
    embd: int
    ff: int
    encodes: bool = False
    heads: int = 1

    @property
    def weights(self) -> int:
        return sum(tensor.size for tensor in self.tensors)

    @property
    def tied(self) -> bool:
        """Whether the output reads the embedding's weights, having none of its own."""
        return all(tensor.name != "output.weight" for tensor in self.tensors)

    def kv_bytes(self, ctx: int, kv_type: str) -> int:
        """Bytes of the KV cache for a context of `ctx` tokens."""
        return cells(ctx) * sum(layer_kv(layer, kv_type) for layer in self.layers)

    def state_bytes(self, sequences: int) -> int:
        """Bytes of recurrent state that `sequences` sequences hold, whatever their length."""
        return F32 * sequences * sum(layer.state for layer in self.layers)


def cells(ctx: int) -> int:
    """The KV cells of a context of `ctx` tokens."""
    return -(-ctx // CELLS) * CELLS


def layer_of(name: str, count: int) -> int:
    """The layer that the tensor `name` of a model with `count` layers is in: `count` for the output, -1 for
    the embedding and all else that llama.cpp never moves to a GPU."""
    if match := _LAYER.fullmatch(name):
        return int(match[1])
    return count if name.startswith("output") else -1


def layer_kv(layer: Layer, kv_type: str) -> int:
    """Bytes of one token in a layer's KV cache."""
    kind = _TYPES[kv_type]
    return (-(-layer.k // kind.block) + -(-layer.v // kind.block)) * kind.size


def anatomy(headers: Sequence[GGUFHeader]) -> Anatomy:
    """The sizes of the model whose files have these headers, the first shard's first."""
    first = headers[0]
    tensors = tuple(tensor for header in headers for tensor in header.tensors)
    parts: dict[int, dict[str, Tensor]] = defaultdict(dict)
    for tensor in tensors:
        if match := _LAYER.fullmatch(tensor.name):
            parts[int(match[1])][match[2]] = tensor
    architecture = first.text("general.architecture") or ""

    def number(key: str, otherwise: int = 0) -> int:
        value = first.metadata.get(f"{architecture}.{key}")
        if isinstance(value, tuple):  # one per layer
            value = max((one for one in value if isinstance(one, int)), default=otherwise)
        return value if isinstance(value, int) and not isinstance(value, bool) else otherwise

    count = max(parts, default=-1) + 1
    with_kv = _LAYERS_WITH_KV.get(architecture, count - number("attention.shared_kv_layers"))
    if architecture in WITHOUT_CACHE:
        with_kv = 0
    state = _state(number)
    layers = []
    for index in range(count):
        part = parts.get(index, {})
        recurrent = any(_RECURRENT.match(name) for name in part)
        k, v = _widths(part, recurrent, number) if index < with_kv else (0, 0)
        size = sum(tensor.size for tensor in part.values())
        layers.append(Layer(size, k, v, state if recurrent else 0))
    embedding = next((tensor for tensor in tensors if tensor.name == "token_embd.weight"), None)
    return Anatomy(
        layers=tuple(layers),
        tensors=tensors,
        active=_active(tensors, number("expert_count"), number("expert_used_count")),
        vocab=_vocab(first, embedding),
        embd=number("embedding_length", embedding.shape[0] if embedding and embedding.shape else 0),
        ff=max(
            number("feed_forward_length"), number("expert_used_count") * number("expert_feed_forward_length")
        ),
        encodes=architecture in WITHOUT_CACHE & ENCODERS,
        heads=max(1, number("attention.head_count", 1)),
    )


def _widths(part: dict[str, Tensor], recurrent: bool, number: _Number) -> tuple[int, int]:
    """Numbers that a token puts into a layer's K and V."""
    if any(name.startswith("nextn.") for name in part):
        return 0, 0
    if "attn_kv_a_mqa.weight" in part and number("attention.key_length_mla"):
        return number("attention.key_length") * number("attention.head_count_kv", 1), 0
    if key := part.get("attn_k.weight"):
        value = part.get("attn_v.weight", key)
        return _rows(key), _rows(value)
    if recurrent or "attn_qkv.weight" not in part:
        return 0, 0
    heads = number("attention.head_count", 1)
    head = number("embedding_length") // max(1, heads)
    kv_heads = number("attention.head_count_kv", heads)
    return kv_heads * number("attention.key_length", head), kv_heads * number("attention.value_length", head)


def _rows(tensor: Tensor) -> int:
    return tensor.shape[1] if len(tensor.shape) > 1 else 0


def _state(number: _Number) -> int:
    """F32 numbers of one sequence's state in a recurrent layer: convolution and state matrix."""
    embd = number("embedding_length")
    if head := number("wkv.head_size"):
        return number("token_shift_count", 2) * embd + embd * head
    if length := number("shortconv.l_cache"):
        return embd * (length - 1)
    kernel, inner, size = number("ssm.conv_kernel"), number("ssm.inner_size"), number("ssm.state_size")
    if head := number("kda.head_dim"):
        width = number("attention.head_count") * head
        return 3 * max(0, kernel - 1) * width + head * width
    return max(0, kernel - 1) * (inner + 2 * number("ssm.group_count") * size) + size * inner


def _active(tensors: Sequence[Tensor], experts: int, used: int) -> int:
    """Bytes of weights read for one token: of the experts those that are used, of the embedding one row."""
    total = 0
    names = {tensor.name for tensor in tensors}
    for tensor in tensors:
        if tensor.name == "per_layer_token_embd.weight":
            continue
        if tensor.name == "token_embd.weight" and "output.weight" in names:
            continue
        of_experts = experts and re.search(r"_exps\.", tensor.name)
        total += tensor.size * used // experts if of_experts else tensor.size
    return total


def _vocab(header: GGUFHeader, embedding: Tensor | None) -> int:
    tokens = header.metadata.get("tokenizer.ggml.tokens")
    if isinstance(tokens, LongArray):
        return tokens.count
    if isinstance(tokens, tuple):
        return len(tokens)
    return _rows(embedding) if embedding else 0
