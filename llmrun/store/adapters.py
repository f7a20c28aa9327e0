"""Whether a file is a LoRA adapter for a model, told from the headers of both. Pure.

What llmrun's converter-made files look like, and what llama.cpp asks of them, is in `src/llama-adapter.cpp`:
for each weight that the adapter changes, a pair of matrices `NAME.lora_a` and `NAME.lora_b` whose product has
the weight's shape. Shapes here are as GGUF has them: the length of a row first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from llmrun.store.gguf import GGUFHeader, Tensor

_KIND, _ALPHA = "adapter.type", "adapter.lora.alpha"
_ACTIVATED = "adapter.alora.invocation_tokens"
_A, _B = ".lora_a", ".lora_b"
_IGNORED = "_norm.weight"  # llama.cpp passes over them


def adapter_fault(adapter: GGUFHeader, weights: Sequence[GGUFHeader]) -> str | None:
    """Why the file with the header `adapter` cannot be applied to the model whose files have the headers
    `weights`; None where it can."""
    if adapter.text("general.type") != "adapter":
        return "it is no adapter"
    if (kind := adapter.text(_KIND)) != "lora":
        return f"it is an adapter of the kind {kind!r}, not a LoRA"
    if _ACTIVATED in adapter.metadata:
        return "it is a LoRA that words of the prompt switch on, which llmrun cannot apply"
    alpha = adapter.metadata.get(_ALPHA, 0.0)
    if not isinstance(alpha, float) or not math.isfinite(alpha):
        return f"its alpha is {alpha!r}, not a number"
    own, of_model = (header.text("general.architecture") for header in (adapter, weights[0]))
    if own != of_model:
        return f"it is for models of the architecture {own}, and this one is {of_model}"
    return _pairs_fault(adapter.tensors, {one.name: one for header in weights for one in header.tensors})


def _pairs_fault(tensors: Sequence[Tensor], weights: dict[str, Tensor]) -> str | None:
    pairs: dict[str, dict[str, Tensor]] = {}
    for tensor in tensors:
        name, part = tensor.name[: -len(_A)], tensor.name[-len(_A) :]
        if part in (_A, _B):
            pairs.setdefault(name, {})[part] = tensor
        elif not tensor.name.endswith(_IGNORED):
            return f"its tensor {tensor.name} is no part of a LoRA"
    if not pairs:
        return "it changes no weight"
    for name, pair in pairs.items():
        if len(pair) < 2:
            return f"its tensor {next(iter(pair.values())).name} lacks the other half"
        if name not in weights:
            return f"it changes {name}, which the model does not have"
        if fault := _shape_fault(name, pair[_A], pair[_B], weights[name]):
            return fault
    return None


def _shape_fault(name: str, a: Tensor, b: Tensor, weight: Tensor) -> str | None:
    (a_row, a_rows), (b_row, b_rows), (row, rows) = map(_matrix, (a, b, weight))
    if name.endswith("token_embd.weight"):  # rows are looked up in it, so its halves are the other way round
        fits = (b_rows, a_rows) == (row, rows)
    else:
        fits = (a_row, b_rows, a_rows) == (row, rows, b_row)
    if fits:
        return None
    return f"its {name} is for {a_row} × {b_rows} weights, and the model has {row} × {rows}"


def _matrix(tensor: Tensor) -> tuple[int, int]:
    """Its length of a row and its number of rows."""
    row, rows = (*tensor.shape, 1, 1)[:2]
    return row, rows
