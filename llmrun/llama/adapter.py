"""Owner of a loaded LoRA adapter."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llmrun.errors import MODEL_LOAD, LlmrunError
from llmrun.llama.library import lib, take_error
from llmrun.llama.model import Model


class Adapter:
    """A LoRA's matrices beside the weights of `model` (https://arxiv.org/abs/2106.09685), to be given to the
    contexts that are made after it. Raises MODEL_LOAD where llama.cpp refuses the file."""

    def __init__(self, model: Model, path: Path) -> None:
        take_error()
        self._pointer: ctypes.c_void_p | None = lib.llama_adapter_lora_init(model.pointer, str(path).encode())
        if not self._pointer:
            raise LlmrunError(
                MODEL_LOAD,
                f"llama.cpp cannot load the adapter {path}: {take_error()}",
                hint="use an adapter that was trained for this model",
            )
        model.adopt(self)

    @property
    def pointer(self) -> ctypes.c_void_p:
        """The native adapter, for the other owners of this package."""
        if self._pointer is None:
            raise ValueError("the adapter is closed")
        return self._pointer

    def close(self) -> None:
        """Free the matrices; no context may use them then. Harmless when called again."""
        if self._pointer is not None:
            lib.llama_adapter_lora_free(self._pointer)
            self._pointer = None


def native_adapters(adapters: Sequence[Adapter]) -> ctypes.Array[Any]:
    """The array of them that llama.cpp takes."""
    kind = lib.llama_adapter_lora_p_ctypes * len(adapters)
    return kind(*(ctypes.cast(one.pointer, lib.llama_adapter_lora_p_ctypes) for one in adapters))


def apply_adapters(context: ctypes.c_void_p, adapters: ctypes.Array[Any], scales: tuple[float, ...]) -> None:
    """Let these adapters, and no others, count so much in the context's next computations."""
    count = len(scales)
    lib.llama_set_adapters_lora(context, adapters, count, (ctypes.c_float * count)(*scales))
