"""Which tensor types llama.cpp computes quickly on which CPU. Facts of llama.cpp, and what was measured.

llama.cpp rearranges ("repacks") the weights of some types for the CPU's wide instructions while it loads
them (`ggml_repack_get_optimal_repack_type` in `ggml-cpu/repack.cpp`). How quick that and the other kernels
are measures `scripts/bench/kernels.py`; docs/performance.md has its table for a Zen 5 with AVX-512. What is
weighed here are the gigabytes of weights that one core reads a second while it writes an answer; all cores
together read no faster than the memory does. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import TYPE_CHECKING

from llmrun.store.gguf import GGUFHeader, Tensor

if TYPE_CHECKING:
    from llmrun.store.hardware import Machine

# What one of these features repacks; the number of rows must divide by 8 (x86) or 4 (ARM).
_REPACKED = {
    "avx2": {"Q4_0", "Q4_K", "IQ4_NL", "MXFP4"},
    "avx512": {"Q2_K"},
    "dotprod": {"Q4_0", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "MXFP4", "Q8_0", "Q1_0"},
}
# Gigabytes a second of one core; measured, see above. AVX2 without AVX-512 is taken to be alike.
_READ = {
    "F32": 25.0,
    "F16": 25.2,
    "BF16": 25.5,
    "Q8_0": 21.7,
    "Q6_K": 23.4,
    "Q5_K": 14.4,
    "Q5_1": 9.8,
    "Q5_0": 11.2,
    "Q4_K": 17.2,
    "Q4_1": 8.9,
    "Q4_0": 16.5,
    "IQ4_NL": 16.2,
    "IQ4_XS": 11.8,
    "Q3_K": 10.4,
    "Q2_K": 12.0,
}
_PACKED, _PLAIN = 16.5, 11.0  # of what was not measured: other processors and other types
_MEMORY = 40.0  # gigabytes a second, where nobody measured it
# Gigabytes and rise of perplexity of an 8B model: the table in llama.cpp's `tools/quantize/quantize.cpp`.
_LOSS = {
    "F32": (32.0, 0.0),
    "F16": (16.0, 0.0),
    "BF16": (16.0, 0.0),
    "Q8_0": (7.96, 0.0026),
    "Q6_K": (6.14, 0.0217),
    "Q5_K_M": (5.33, 0.0569),
    "Q5_K_S": (5.21, 0.1049),
    "Q5_1": (5.65, 0.1062),
    "Q5_0": (5.21, 0.1316),
    "Q4_K_M": (4.58, 0.1754),
    "Q4_K_S": (4.37, 0.2689),
    "Q4_1": (4.78, 0.4511),
    "Q4_0": (4.34, 0.4685),
    "Q3_K_L": (4.03, 0.5562),
    "Q3_K_M": (3.74, 0.6569),
    "Q3_K_S": (3.41, 1.6321),
    "Q2_K": (2.96, 3.5199),
    "Q2_K_S": (2.96, 3.1836),
    # Models that come in it were trained in it.
    "MXFP4": (4.6, 0.0),
}
# Types without a figure there: what they are taken to lose, by their bits.
_LOSS_BY_BITS = {8: 0.003, 6: 0.03, 5: 0.1, 4: 0.3, 3: 1.2, 2: 4.0, 1: 8.0}
MAX_PADDING = 32  # bytes between two tensors that lie side by side
_LOOKED_UP = ("token_embd.weight", "per_layer_token_embd.weight")  # rows are read, nothing is multiplied


def repacks(tensor: Tensor, features: Collection[str], *, as_output: bool = False) -> bool:
    """Whether llama.cpp makes a rearranged copy of `tensor` on a CPU with `features`. `as_output`: of the
    embedding, where it serves as the output too."""
    multiplied = tensor.name == _LOOKED_UP[0] if as_output else tensor.name not in _LOOKED_UP
    if not multiplied or len(tensor.shape) < 2:
        return False
    return tensor.shape[1] % 8 == 0 and any(
        tensor.type.name in types for feature, types in _REPACKED.items() if feature in features
    )


def copied(header: GGUFHeader, features: Collection[str]) -> list[tuple[int, int]]:
    """The byte ranges of a file with nothing in them but weights of which there is a rearranged copy: from
    the first byte to behind the last one, in order. Rows of an embedding are looked up beside a copy for the
    output."""
    ranges: list[tuple[int, int]] = []
    for tensor in header.tensors:
        if repacks(tensor, features):
            begin = header.data_offset + tensor.offset
            if ranges and begin - ranges[-1][1] < MAX_PADDING:
                begin = ranges.pop()[0]
            ranges.append((begin, header.data_offset + tensor.offset + tensor.size))
    return ranges


def trade(label: str, size: int | None, machine: Machine, on_gpu: bool) -> float:
    """How a file of quant `label` and `size` bytes weighs speed against quality; the smallest is the best.
    It is the time of a token, in seconds, times e to the rise of perplexity for what is lost."""
    quant = label.upper().removeprefix("UD-")
    base = quant.rpartition("_K_")[0] + "_K" if "_K_" in quant else quant.removesuffix("_MOE")
    known = _LOSS.get(quant) or _LOSS.get(f"{base}_M") or _LOSS.get(base)
    bits = next((int(c) for c in quant if c.isdigit()), 16)
    gigabytes, loss = known or (bits + 0.5, _LOSS_BY_BITS.get(bits, 0.0))
    memory = machine.bandwidth / 1e9 if machine.bandwidth else _MEMORY
    speed = memory if on_gpu else min(memory, machine.cores * _read(base, machine.features))
    return (size / 1e9 if size else gigabytes) / speed * math.exp(loss)


def _read(kind: str, features: Collection[str]) -> float:
    """Gigabytes a second that one core reads of weights of this type."""
    if "avx2" in features and kind in _READ:
        return _READ[kind]
    packed = any(kind in types for feature, types in _REPACKED.items() if feature in features)
    return _PACKED if packed else _PLAIN
