"""Which tensor types llama.cpp computes quickly on which CPU. Facts of llama.cpp, and what was measured.

llama.cpp rearranges ("repacks") the weights of some types for the CPU's wide instructions while it loads
them (`ggml_repack_get_optimal_repack_type` in `ggml-cpu/repack.cpp`); prompts are then read up to four times
as fast. `SPEED` tells what that and the other kernels come to: SmolLM2-135M, two threads of a Zen 5 with
AVX-512, tokens a second of prompt and of answer:

    type      prompt   answer
    Q4_0        1900      213
    Q8_0        1000      141
    Q4_K_M       920      161
    Q4_1         450      143

A type that is not repacked is held to Q4_1's share, the smallest. Pure.
"""

from __future__ import annotations

from collections.abc import Collection

from llmrun.store.gguf import Tensor

# What one of these features repacks; the number of rows must divide by 8 (x86) or 4 (ARM).
_REPACKED = {
    "avx2": {"Q4_0", "Q4_K", "IQ4_NL", "MXFP4"},
    "avx512": {"Q2_K"},
    "dotprod": {"Q4_0", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "MXFP4", "Q8_0", "Q1_0"},
}
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
