"""Owner of a loaded model's weights."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from llmrun.errors import MODEL_LOAD, LlmrunError
from llmrun.llama.library import lib, take_error
from llmrun.llama.vocab import Vocab


class _Closable(Protocol):
    def close(self) -> None: ...


class Model:
    """Weights and vocabulary of one GGUF file (the first shard names the rest).

    `gpu_layers` None leaves all layers to the GPU where there is one. `on_progress` gets 0 to 1 from
    the loading thread. Raises MODEL_LOAD where llama.cpp refuses the file; its reason is in the log.
    """

    def __init__(
        self,
        path: Path,
        *,
        gpu_layers: int | None = None,
        on_progress: Callable[[float], None] | None = None,
    ) -> None:
        params = lib.llama_model_default_params()
        params.n_gpu_layers = -1 if gpu_layers is None else gpu_layers

        @lib.llama_progress_callback  # type: ignore[untyped-decorator]  # a ctypes function type
        def report(fraction: float, _user_data: object) -> bool:
            if on_progress is not None:
                on_progress(fraction)
            return True

        params.progress_callback = report
        take_error()
        self._pointer: ctypes.c_void_p | None = lib.llama_model_load_from_file(str(path).encode(), params)
        if not self._pointer:
            raise LlmrunError(
                MODEL_LOAD,
                f"llama.cpp cannot load {path}: {take_error()}",
                hint="if the file is damaged, pull it again",
            )
        self._dependents: list[_Closable] = []
        self.vocab = Vocab(self._pointer)

    @property
    def pointer(self) -> ctypes.c_void_p:
        """The native model, for the other owners of this package."""
        if self._pointer is None:
            raise ValueError("the model is closed")
        return self._pointer

    def adopt(self, dependent: _Closable) -> None:
        """Note an owner of something made from this model: it is closed before the model is."""
        self._dependents.append(dependent)

    def close(self) -> None:
        """Free the weights, after everything made from them. Harmless when called again."""
        for dependent in reversed(self._dependents):
            dependent.close()
        self._dependents.clear()
        if self._pointer is not None:
            lib.llama_model_free(self._pointer)
            self._pointer = None

    @functools.cached_property
    def ctx_train(self) -> int:
        """Tokens of context the model was trained for."""
        return int(lib.llama_model_n_ctx_train(self.pointer))

    @functools.cached_property
    def parameters(self) -> int:
        return int(lib.llama_model_n_params(self.pointer))

    @functools.cached_property
    def size(self) -> int:
        """Bytes of all tensors."""
        return int(lib.llama_model_size(self.pointer))

    @functools.cached_property
    def description(self) -> str:
        """llama.cpp's short name of architecture, size and quant."""
        buffer = ctypes.create_string_buffer(256)
        lib.llama_model_desc(self.pointer, buffer, len(buffer))
        return buffer.value.decode("utf-8", "replace")

    @functools.cached_property
    def chat_template(self) -> str | None:
        """The GGUF's own Jinja template."""
        template = lib.llama_model_chat_template(self.pointer, None)
        return bytes(template).decode("utf-8", "replace") if template else None

    @functools.cached_property
    def unservable(self) -> str | None:
        """Why this kind of model cannot generate text token by token; None where it can."""
        if lib.llama_model_has_encoder(self.pointer):
            return "has an encoder (T5-like models are not supported)"
        if not lib.llama_model_has_decoder(self.pointer):
            return "has no decoder"
        if lib.llama_model_is_diffusion(self.pointer):
            return "is a diffusion model"
        return None

    @functools.cached_property
    def trimmable(self) -> bool:
        """Whether its memory of a sequence can be cut at any token (recurrent state cannot)."""
        return not (lib.llama_model_is_recurrent(self.pointer) or lib.llama_model_is_hybrid(self.pointer))
